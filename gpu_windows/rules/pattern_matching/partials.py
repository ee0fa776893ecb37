"""Partial matches that take a row, in Flink's order."""

from __future__ import annotations

from typing import Any

from gpu_windows.rules.pattern_matching.conditions import fold_in, holds
from gpu_windows.rules.pattern_matching.heap import push
from gpu_windows.rules.pattern_matching.layout import (
    DONE,
    ERROR,
    EVERY,
    NO_ROW,
    NO_VALUE,
    NOWHERE,
    OVERFLOWED,
    Asked,
    Completed,
    Pool,
    Settings,
    Work,
)


def may_take(variable: int, asked: Asked, work: Work) -> int:
    """Return `holds`, which is asked for once for a partial match and a row."""
    evaluated, bit = work.machine.evaluated, 1 << variable
    if evaluated[0] & bit:
        return 1 if evaluated[1] & bit else 0
    found = holds(variable, asked, work)
    if found < 0:
        work.machine.failed[0] = variable
        return found
    evaluated[0] |= bit
    if found:
        evaluated[1] |= bit
    return found


def is_free(unless: int, asked: Asked, work: Work) -> int:
    """Return whether a row is for none of some variables, a bit each: 1 or 0; -1: no value."""
    for variable in range(work.settings.variables):
        if unless >> variable & 1:
            found = may_take(variable, asked, work)
            if found != 0:
                return -1 if found < 0 else 0
    return 1


def end_at(variable: int, each: int, asked: Asked, settings: Settings) -> int:
    """Return where the rows of each variable end once one has taken the row."""
    end: int = asked.row
    if each >= variable:
        end += 1
    elif asked.pool.start[asked.item] != NO_ROW:
        end = asked.pool.ends[asked.item * settings.variables + each]
    return end


def copy_ends(ends: Any, item: int, out: Any, to: int, shift: int, settings: Settings) -> None:
    """Copy the ends of a match to another place, ``shift`` rows further."""
    for each in range(settings.variables):
        out[to * settings.variables + each] = ends[item * settings.variables + each] + shift


def copy_aggregates(source: Any, item: int, into: Any, to: int, settings: Settings) -> None:
    """Copy what the aggregates of a partial match keep, between `Pool` or `Found`."""
    for number in range(settings.aggregates):
        old, new = item * settings.aggregates + number, to * settings.aggregates + number
        into.ints[new], into.floats[new] = source.ints[old], source.floats[old]
        into.counts[new] = source.counts[old]


def took(variable: int, state: int, asked: Asked, into: Pool, work: Work) -> None:
    """Add a partial match that has taken a row to a pool."""
    settings, pool, item = work.settings, asked.pool, asked.item
    made = into.sizes[0]
    is_new = pool.start[item] == NO_ROW
    into.state[made] = state
    into.start[made] = asked.row if is_new else pool.start[item]
    for each in range(settings.variables):
        into.ends[made * settings.variables + each] = end_at(variable, each, asked, settings)
    if not is_new:
        copy_aggregates(pool, item, into, made, settings)
    for number in range(settings.aggregates):
        place = made * settings.aggregates + number
        if is_new:
            into.counts[place] = 0
        if work.program.of[number] in (EVERY, variable):
            add_row(number, asked.row, into, place, work)
    into.sizes[0] = made + 1
    into.sizes[1] = push(into.heap, into.sizes[1], made, into.start)


def add_row(number: int, row: int, into: Pool, place: int, work: Work) -> None:
    """Add a row to an aggregate of a partial match; one that has overflown stays as it is."""
    program, rows, count = work.program, work.rows, into.counts[place]
    column = program.reads[number]
    at = max(column, 0) * rows.ts.size + row
    if count != OVERFLOWED and (column < 0 or rows.valid[at]):
        tag = fold_in(
            program.keeps[number], program.is_float[number], count,
            into.ints, into.floats, place, rows.ints[at], rows.floats[at],
        )  # fmt: skip
        into.counts[place] = OVERFLOWED if tag == ERROR else count + 1


def complete(variable: int, asked: Asked, completed: Completed, settings: Settings) -> None:
    """Note that a partial match is complete with a row that a variable takes."""
    made = completed.sizes[0]
    start = asked.pool.start[asked.item]
    completed.start[made] = asked.row if start == NO_ROW else start
    for each in range(settings.variables):
        end = end_at(variable, each, asked, settings)
        completed.ends[made * settings.variables + each] = end
    completed.sizes[0] = made + 1
    completed.sizes[1] = push(completed.new, completed.sizes[1], made, completed.start)


def stay(pool: Pool, item: int, into: Pool, settings: Settings) -> None:
    """Add a partial match to a pool as it is."""
    made = into.sizes[0]
    into.state[made], into.start[made] = pool.state[item], pool.start[item]
    copy_ends(pool.ends, item, into.ends, made, 0, settings)
    copy_aggregates(pool, item, into, made, settings)
    into.sizes[0] = made + 1
    into.sizes[1] = push(into.heap, into.sizes[1], made, into.start)


def takes(state: int, asked: Asked, work: Work) -> int:
    """Return whether a state takes a row: 1 or 0; -1: no value."""
    found = may_take(work.automaton.variable[state], asked, work)
    if found <= 0:
        return found
    return is_free(work.automaton.take_unless[state], asked, work)


def hands_on(state: int, asked: Asked, work: Work) -> int:
    """Return whether a state hands a row on to another one: 1 or 0; -1: no value."""
    if work.automaton.proceed_to[state] == NOWHERE:
        return 0
    return is_free(work.automaton.proceed_unless[state], asked, work)


def ends_here(state: int, asked: Asked, work: Work) -> int:
    """Return whether what comes after a state may be left out: 1 or 0; -1: no value."""
    while state != work.settings.final:
        found = hands_on(state, asked, work)
        if found <= 0:
            return found
        state = work.automaton.proceed_to[state]
    return 1


def take(state: int, asked: Asked, into: Pool, completed: Completed, work: Work) -> int:
    """Take a row for a partial match in a state; return 1, or -1 if a condition has no value."""
    variable, target = work.automaton.variable[state], work.automaton.take_to[state]
    if target == work.settings.final:
        complete(variable, asked, completed, work.settings)
        return 1
    took(variable, target, asked, into, work)
    ends = ends_here(target, asked, work)
    if ends > 0:
        complete(variable, asked, completed, work.settings)
    return -1 if ends < 0 else 1


def follow(asked: Asked, into: Pool, completed: Completed, work: Work) -> int:
    """Take a row for a partial match in every state that accepts it; return DONE or NO_VALUE."""
    work.machine.evaluated[0] = work.machine.evaluated[1] = 0
    state = asked.pool.state[asked.item]
    while state not in (work.settings.final, NOWHERE):
        found = takes(state, asked, work)
        if found > 0:
            found = take(state, asked, into, completed, work)
        if found >= 0:
            found = hands_on(state, asked, work)
        if found < 0:
            return NO_VALUE
        state = work.automaton.proceed_to[state] if found else NOWHERE
    if asked.pool.start[asked.item] == NO_ROW:
        stay(asked.pool, asked.item, into, work.settings)
    return DONE
