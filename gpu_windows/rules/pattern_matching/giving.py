"""Matches that are given, and what each of them ends."""

from __future__ import annotations

from gpu_windows.rules.pattern_matching.heap import drop_until, pop, precedes_in_heap, push
from gpu_windows.rules.pattern_matching.layout import (
    DONE,
    FOR_EVER,
    NO_ROW,
    NOTHING_OVER,
    NOTHING_TO_SKIP_TO,
    PAST_LAST_ROW,
    TO_FIRST,
    TO_NEXT_ROW,
    Completed,
    Matches,
    Pool,
    Pools,
    Settings,
    Work,
)
from gpu_windows.rules.pattern_matching.partials import copy_ends, stay


def is_over(first: int, time: int, within: int) -> bool:
    """Whether a match that began at a time is too long at another one."""
    return within > 0 and first <= time - within


def last_skipped(completed: Completed, item: int, settings: Settings) -> int:
    """Return the last row where partial matches that begin there end once a match is emitted.

    -1: the variable to skip to has no row; -2: the match would be found again without end.
    """
    ends = item * settings.variables
    start: int = completed.start[item]
    last: int = completed.ends[ends + settings.variables - 1] - 1
    if settings.skips in (TO_NEXT_ROW, PAST_LAST_ROW):
        return start if settings.skips == TO_NEXT_ROW else last
    variable = settings.skips_to
    begin = start if variable == 0 else completed.ends[ends + variable - 1]
    end = completed.ends[ends + variable]
    if begin == end:
        return -1
    to: int = begin if settings.skips == TO_FIRST else end - 1
    return -2 if to == start else to - 1


def give(key: int, cause: int, partials: Pool, matches: Matches, settings: Settings) -> int:
    """Give complete matches that no partial one may come before; return how that ended."""
    completed, found = matches.completed, matches.found
    for place in range(completed.sizes[1]):
        completed.sizes[2] = push(
            completed.pending, completed.sizes[2], completed.new[place], completed.start
        )
    completed.sizes[1] = 0
    while completed.sizes[2] > 0:
        item = completed.pending[0]
        if partials.sizes[1] > 0 and precedes_in_heap(
            partials.start[partials.heap[0]], completed.start[item]
        ):
            break
        last = last_skipped(completed, item, settings)
        if last < 0:
            return NOTHING_TO_SKIP_TO if last == -1 else FOR_EVER
        made = found.sizes[0]
        found.key[made], found.cause[made] = key, cause
        found.start[made] = completed.start[item]
        copy_ends(completed.ends, item, found.ends, made, 0, settings)
        found.sizes[0] = made + 1
        completed.sizes[2] = pop(completed.pending, completed.sizes[2], completed.start)
        partials.sizes[1] = drop_until(partials.heap, partials.sizes[1], last, partials.start)
        completed.sizes[2] = drop_until(
            completed.pending, completed.sizes[2], last, completed.start
        )
    if completed.sizes[2] == 0:
        completed.sizes[0] = 0
    return DONE


def expire(key: int, cause: int, time: int, pools: Pools, matches: Matches, work: Work) -> int:
    """Drop partial matches that are too long by a time, and give what waited for them.

    Return NOTHING_OVER if there are none; DONE: the others are those after it; else how that
    failed.
    """
    ts, within = work.rows.ts, work.settings.within
    pool, into, over = pools.now, pools.after, 0
    if within <= 0:
        return NOTHING_OVER
    for place in range(pool.sizes[1]):
        start = pool.start[pool.heap[place]]
        if start != NO_ROW and is_over(ts[start], time, within):
            over += 1
    if over == 0:
        return NOTHING_OVER
    into.sizes[0] = into.sizes[1] = 0
    for place in range(pool.sizes[1]):
        item = pool.heap[place]
        start = pool.start[item]
        if start == NO_ROW or not is_over(ts[start], time, within):
            stay(pool, item, into, work.settings)
    return give(key, cause, into, matches, work.settings)
