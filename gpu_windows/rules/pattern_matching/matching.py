"""The rows of keys, one after the other, through the automaton."""

from __future__ import annotations

from gpu_windows.rules.pattern_matching.giving import expire, give
from gpu_windows.rules.pattern_matching.layout import (
    DONE,
    FEW_COMPLETED,
    FEW_GIVEN,
    FEW_PARTIALS,
    FEW_STORED,
    NO_ROW,
    NOTHING_OVER,
    Asked,
    Completed,
    Found,
    Matches,
    Pool,
    Pools,
    Settings,
    Work,
)
from gpu_windows.rules.pattern_matching.partials import copy_aggregates, copy_ends, follow


def short_of(pools: Pools, matches: Matches, settings: Settings) -> int:
    """Return DONE if what a row may add has room, or else what is too small.

    A row may add some for each partial match; and all that is complete may be given.
    """
    completed, found = matches.completed, matches.found
    more = pools.now.sizes[1] * settings.branches
    if more + 1 > pools.after.state.size:
        return FEW_PARTIALS
    if completed.sizes[0] + more > completed.start.size:
        return FEW_COMPLETED
    if found.sizes[0] + completed.sizes[2] + more > found.key.size:
        return FEW_GIVEN
    return DONE


def begin(key: int, stored: Found, pool: Pool, completed: Completed, work: Work) -> int:
    """Load the open matches of a key; return DONE, or the memory that is too small."""
    settings = work.settings
    first, after = stored.partials[key], stored.partials[key + 1]
    pending = stored.complete[key + 1] - stored.complete[key]
    if after - first + 1 > pool.state.size:
        return FEW_PARTIALS
    if pending > completed.start.size:
        return FEW_COMPLETED
    base = work.rows.begins[key]
    pool.sizes[0] = pool.sizes[1] = 0
    completed.sizes[0] = completed.sizes[1] = completed.sizes[2] = 0
    if first == after:
        pool.state[0], pool.start[0] = 0, NO_ROW
        pool.heap[0] = 0
        pool.sizes[0] = pool.sizes[1] = 1
    for each in range(after - first):
        old = first + each
        pool.state[each], pool.heap[each] = stored.state[old], each
        start = stored.starts[old]
        pool.start[each] = NO_ROW if start == NO_ROW else base + start
        copy_ends(stored.partial_ends, old, pool.ends, each, base, settings)
        copy_aggregates(stored, old, pool, each, settings)
        pool.sizes[0] = pool.sizes[1] = each + 1
    for each in range(pending):
        old = stored.complete[key] + each
        completed.start[each] = base + stored.complete_starts[old]
        completed.pending[each] = each
        copy_ends(stored.complete_ends, old, completed.ends, each, base, settings)
        completed.sizes[0] = completed.sizes[2] = each + 1
    return DONE


def leave(key: int, pool: Pool, matches: Matches, work: Work) -> int:
    """Store the open matches of a key, with rows relative to its first; return DONE or FEW_STORED.

    Nothing is stored for a key without open matches.
    """
    completed, found, settings = matches.completed, matches.found, work.settings
    count, pending = pool.sizes[1], completed.sizes[2]
    is_idle = count == 1 and pending == 0 and pool.start[pool.heap[0]] == NO_ROW
    if is_idle:
        count = 0
    if found.sizes[1] + count > found.state.size:
        return FEW_STORED
    if found.sizes[2] + pending > found.complete_starts.size:
        return FEW_STORED
    base = work.rows.begins[key]
    for each in range(count):
        item, new = pool.heap[each], found.sizes[1] + each
        found.state[new] = pool.state[item]
        start = pool.start[item]
        found.starts[new] = NO_ROW if start == NO_ROW else start - base
        if start != NO_ROW:  # else all that is stored of it is 0
            copy_ends(pool.ends, item, found.partial_ends, new, -base, settings)
            copy_aggregates(pool, item, found, new, settings)
    found.sizes[1] += count
    for each in range(pending):
        item, new = completed.pending[each], found.sizes[2] + each
        found.complete_starts[new] = completed.start[item] - base
        copy_ends(completed.ends, item, found.complete_ends, new, -base, settings)
    found.sizes[2] += pending
    found.partials[key + 1] = found.sizes[1]
    found.complete[key + 1] = found.sizes[2]
    return DONE


def take_row(key: int, pools: Pools, matches: Matches, work: Work) -> int:
    """Take the next row, or first drop matches that are too long by its time; return the status."""
    cursor, pool, into = work.machine.cursor, pools.now, pools.after
    row = cursor[1]
    ended = expire(key, row, work.rows.ts[row], pools, matches, work)
    if ended == NOTHING_OVER:
        into.sizes[0] = into.sizes[1] = 0
        ended = DONE
        for place in range(pool.sizes[1]):
            if ended == DONE:
                asked = Asked(row, pool, pool.heap[place])
                ended = follow(asked, into, matches.completed, work)
        if ended == DONE:
            ended = give(key, row, into, matches, work.settings)
        cursor[1] = row + 1
    cursor[2] = 1 - cursor[2]
    return ended


def finish(key: int, pools: Pools, matches: Matches, work: Work) -> int:
    """Drop matches that are too long by the watermark, or leave the key; return the status."""
    cursor = work.machine.cursor
    ended = expire(key, -1, work.settings.watermark, pools, matches, work)
    if ended != NOTHING_OVER:
        cursor[2] = 1 - cursor[2]
        return ended
    ended = leave(key, pools.now, matches, work)
    if ended == DONE:
        cursor[0], cursor[1] = key + 1, -1
    return ended


def run(stored: Found, pools: Pools, matches: Matches, work: Work) -> int:
    """Match the rows of all keys, from where the run was; return how it ended.

    Where memory was too small it goes on with more, whose contents are the same.
    """
    cursor, ended = work.machine.cursor, DONE
    while ended == DONE and cursor[0] < work.rows.stored.size:
        key = cursor[0]
        turned = pools
        if cursor[2]:
            turned = Pools(pools.after, pools.now)
        if cursor[1] < 0:
            ended = begin(key, stored, turned.now, matches.completed, work)
            if ended == DONE:
                cursor[1] = work.rows.begins[key] + work.rows.stored[key]
            continue
        ended = short_of(turned, matches, work.settings)
        if ended != DONE:
            break
        if cursor[1] < work.rows.begins[key + 1]:
            ended = take_row(key, turned, matches, work)
        else:
            ended = finish(key, turned, matches, work)
    return ended
