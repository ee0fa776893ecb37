"""Partial matches that take a row, in Flink's order."""

from __future__ import annotations

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
    Automaton,
    Completed,
    Machine,
    Pool,
    Program,
    Rows,
    Settings,
)


def may_take(
    variable: int, row: int, pool: Pool, item: int,
    program: Program, settings: Settings, rows: Rows, machine: Machine,
) -> int:  # fmt: skip
    """Return `holds`, which is asked for once for a partial match and a row."""
    bit = 1 << variable
    if machine.known[0] & bit:
        return 1 if machine.known[1] & bit else 0
    found = holds(variable, row, pool, item, program, settings, rows, machine)
    if found < 0:
        machine.failed[0] = variable
        return found
    machine.known[0] |= bit
    if found:
        machine.known[1] |= bit
    return found


def is_free(
    unless: int, row: int, pool: Pool, item: int,
    program: Program, settings: Settings, rows: Rows, machine: Machine,
) -> int:  # fmt: skip
    """Return whether a row is for none of some variables, a bit each: 1 or 0; -1: no value."""
    for variable in range(settings.variables):
        if unless >> variable & 1:
            found = may_take(variable, row, pool, item, program, settings, rows, machine)
            if found != 0:
                return -1 if found < 0 else 0
    return 1


def took(
    variable: int, state: int, row: int, pool: Pool, item: int, into: Pool,
    program: Program, settings: Settings, rows: Rows,
) -> None:  # fmt: skip
    """Add a partial match that has taken a row to a pool."""
    made = into.sizes[0]
    is_new = pool.start[item] == NO_ROW
    into.state[made] = state
    into.start[made] = row if is_new else pool.start[item]
    for each in range(settings.variables):
        end = row + 1
        if each < variable:
            end = row if is_new else pool.ends[item * settings.variables + each]
        into.ends[made * settings.variables + each] = end
    for number in range(settings.aggregates):
        place = made * settings.aggregates + number
        count = 0
        if not is_new:
            old = item * settings.aggregates + number
            count = pool.counts[old]
            into.ints[place], into.floats[place] = pool.ints[old], pool.floats[old]
        if count != OVERFLOWED and program.of[number] in (EVERY, variable):
            column = program.reads[number]
            at = max(column, 0) * rows.ts.size + row
            if column < 0 or rows.valid[at]:
                tag = fold_in(
                    program.keeps[number], program.is_float[number], count,
                    into.ints, into.floats, place, rows.ints[at], rows.floats[at],
                )  # fmt: skip
                count = OVERFLOWED if tag == ERROR else count + 1
        into.counts[place] = count
    into.sizes[0] = made + 1
    into.sizes[1] = push(into.heap, into.sizes[1], made, into.start)


def complete(
    variable: int, row: int, pool: Pool, item: int, completed: Completed, settings: Settings
) -> None:
    """Note that a partial match is complete with a row that a variable takes."""
    made = completed.sizes[0]
    is_new = pool.start[item] == NO_ROW
    completed.start[made] = row if is_new else pool.start[item]
    for each in range(settings.variables):
        end = row + 1
        if each < variable:
            end = row if is_new else pool.ends[item * settings.variables + each]
        completed.ends[made * settings.variables + each] = end
    completed.sizes[0] = made + 1
    completed.sizes[1] = push(completed.new, completed.sizes[1], made, completed.start)


def stay(pool: Pool, item: int, into: Pool, settings: Settings) -> None:
    """Add a partial match to a pool as it is."""
    made = into.sizes[0]
    into.state[made], into.start[made] = pool.state[item], pool.start[item]
    for each in range(settings.variables):
        into.ends[made * settings.variables + each] = pool.ends[item * settings.variables + each]
    for number in range(settings.aggregates):
        new, old = made * settings.aggregates + number, item * settings.aggregates + number
        into.ints[new], into.floats[new] = pool.ints[old], pool.floats[old]
        into.counts[new] = pool.counts[old]
    into.sizes[0] = made + 1
    into.sizes[1] = push(into.heap, into.sizes[1], made, into.start)


def takes(
    state: int, row: int, pool: Pool, item: int, automaton: Automaton,
    program: Program, settings: Settings, rows: Rows, machine: Machine,
) -> int:  # fmt: skip
    """Return whether a state takes a row: 1 or 0; -1: no value."""
    variable = automaton.variable[state]
    found = may_take(variable, row, pool, item, program, settings, rows, machine)
    if found <= 0:
        return found
    return is_free(automaton.takes_unless[state], row, pool, item, program, settings, rows, machine)


def hands_on(
    state: int, row: int, pool: Pool, item: int, automaton: Automaton,
    program: Program, settings: Settings, rows: Rows, machine: Machine,
) -> int:  # fmt: skip
    """Return whether a state hands a row on to another one: 1 or 0; -1: no value."""
    if automaton.hands_to[state] == NOWHERE:
        return 0
    return is_free(automaton.hands_unless[state], row, pool, item, program, settings, rows, machine)


def ends_here(
    state: int, row: int, pool: Pool, item: int, automaton: Automaton,
    program: Program, settings: Settings, rows: Rows, machine: Machine,
) -> int:  # fmt: skip
    """Return whether what comes after a state may be left out: 1 or 0; -1: no value."""
    while state != settings.final:
        found = hands_on(state, row, pool, item, automaton, program, settings, rows, machine)
        if found <= 0:
            return found
        state = automaton.hands_to[state]
    return 1


def take(
    state: int, row: int, pool: Pool, item: int, into: Pool, completed: Completed,
    automaton: Automaton, program: Program, settings: Settings, rows: Rows, machine: Machine,
) -> int:  # fmt: skip
    """Have a partial match take a row in a state; return 1, or -1: no value."""
    variable, target = automaton.variable[state], automaton.takes_to[state]
    if target == settings.final:
        complete(variable, row, pool, item, completed, settings)
        return 1
    took(variable, target, row, pool, item, into, program, settings, rows)
    ends = ends_here(target, row, pool, item, automaton, program, settings, rows, machine)
    if ends > 0:
        complete(variable, row, pool, item, completed, settings)
    return -1 if ends < 0 else 1


def follow(
    row: int, pool: Pool, item: int, into: Pool, completed: Completed, automaton: Automaton,
    program: Program, settings: Settings, rows: Rows, machine: Machine,
) -> int:  # fmt: skip
    """Have a partial match take a row wherever it may; return DONE or NO_VALUE."""
    machine.known[0] = machine.known[1] = 0
    state = pool.state[item]
    while state not in (settings.final, NOWHERE):
        found = takes(state, row, pool, item, automaton, program, settings, rows, machine)
        if found > 0:
            found = take(
                state, row, pool, item, into, completed, automaton, program, settings, rows, machine
            )
        if found >= 0:
            found = hands_on(state, row, pool, item, automaton, program, settings, rows, machine)
        if found < 0:
            return NO_VALUE
        state = automaton.hands_to[state] if found else NOWHERE
    if pool.start[item] == NO_ROW:
        stay(pool, item, into, settings)
    return DONE


#: The functions that kernels compile, each after those that it calls.
COMPILED = (
    may_take, is_free, took, complete, stay, takes, hands_on, ends_here, take, follow,
)  # fmt: skip
