"""Which variables a row may be taken for: the conditions of DEFINE, in postfix notation.

Nulls, NaN, overflow and what is asked of AND and OR are Spark's, in ANSI mode.
"""

from __future__ import annotations

from typing import Any

from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.rules.pattern_matching.layout import (
    ADD,
    AGGREGATE,
    AND,
    CHOOSE,
    CONSTANT,
    COUNT,
    DIVIDE,
    EQUAL,
    ERROR,
    EVERY,
    FILL,
    FIRST,
    GROWS,
    IS_NULL,
    LESS,
    LESS_OR_EQUAL,
    MIN,
    MODULO,
    MULTIPLY,
    NO_ROW,
    NOT,
    NULL,
    OR,
    OVERFLOWED,
    QUOTIENT,
    SUBTRACT,
    SUM,
    THERE,
    TO_FLOAT,
    Asked,
    Machine,
    Program,
    Settings,
    Work,
)


def first_row(asked: Asked, variable: int, settings: Settings) -> int:
    """Return the first row of a variable, or what comes after the rows of those before it."""
    first: int = asked.pool.start[asked.item]
    if first == NO_ROW:
        first = asked.row
    elif variable > 0:
        first = asked.pool.ends[asked.item * settings.variables + variable - 1]
    return first


def end_row(asked: Asked, variable: int, settings: Settings) -> int:
    """Return what comes after the last row of a variable, before the row that is asked for."""
    end: int = asked.row
    if asked.pool.start[asked.item] != NO_ROW and variable != EVERY:
        end = asked.pool.ends[asked.item * settings.variables + variable]
    return end


def row_of(
    does: int, variable: int, offset: int, begin: int, end: int, row: int, candidate: int
) -> int:
    """Return the row that FIRST or LAST references, or NO_ROW.

    The row that is asked for is one of the variable that it may be taken for.
    """
    own = 1 if variable in (EVERY, candidate) else 0
    count = end - begin + own
    if offset >= count:
        return NO_ROW
    place = offset if does == FIRST else count - 1 - offset
    return row if place == end - begin else begin + place


def fits(value: int, bits: int) -> bool:
    """Whether an integer fits ``bits`` bits."""
    return bits == 64 or -(1 << (bits - 1)) <= value < (1 << (bits - 1))


def is_over_64(does: int, one: int, other: int) -> bool:
    """Whether a sum, a difference or a product of integers does not fit 64 bits.

    Told before it is computed: what comes after an overflow is not defined where it is compiled.
    """
    if does == ADD:
        return one > LONG_MAX - other if other > 0 else one < LONG_MIN - other
    if does == SUBTRACT:
        return one < LONG_MIN + other if other > 0 else one > LONG_MAX + other
    if one == 0 or other == 0:
        return False
    if one == LONG_MIN or other == LONG_MIN:
        return one != 1 and other != 1
    limit = LONG_MAX // abs(other)
    if (one < 0) != (other < 0) and LONG_MAX % abs(other) == abs(other) - 1:
        limit += 1
    return abs(one) > limit


def whole(does: int, one: int, other: int, bits: int, out: Any, place: int) -> int:
    """Compute with integers; return THERE, or ERROR where there is no value."""
    if does in (MODULO, QUOTIENT):
        if other == 0 or (does == QUOTIENT and other == -1 and one == LONG_MIN):
            return ERROR
        value = 0 if does == MODULO else -one
        if other != -1:
            value = divide(one, other)
            if does == MODULO:
                value = one - value * other
    elif is_over_64(does, one, other):
        return ERROR
    elif does == ADD:
        value = one + other
    else:
        value = one - other if does == SUBTRACT else one * other
    if not fits(value, bits):
        return ERROR
    out[place] = value
    return THERE


def divide(one: int, other: int) -> int:
    """Return a quotient of integers, rounded towards zero."""
    value = one // other
    if value < 0 and value * other != one:
        value += 1
    return value


def compute_floats(does: int, one: float, other: float, out: Any, place: int) -> int:
    """Compute with floats; return THERE, or ERROR where there is no value."""
    if does == ADD:
        out[place] = one + other
    elif does == SUBTRACT:
        out[place] = one - other
    elif does == MULTIPLY:
        out[place] = one * other
    elif other == 0.0:
        return ERROR
    elif does == DIVIDE:
        out[place] = one / other
    else:
        rest = abs(one) % abs(other)
        out[place] = -rest if one < 0 else rest
    return THERE


def are_in_order(does: int, one: float, other: float) -> bool:
    """Whether floats are equal, or one is less; NaN equals itself and is greater than all."""
    if does == EQUAL:
        return one == other or (one != one and other != other)  # noqa: PLR0124 - NaN
    if other != other:  # noqa: PLR0124
        return does == LESS_OR_EQUAL or one == one  # noqa: PLR0124
    return one < other if does == LESS else one <= other


def compare(does: int, one: int, other: int) -> bool:
    """Whether integers are equal, or one is less."""
    if does == EQUAL:
        return one == other
    return one < other if does == LESS else one <= other


def connect(does: int, top: int, machine: Machine) -> None:
    """Put AND or OR of the two upper values in the place of the lower one."""
    ints, tags = machine.ints, machine.tags
    decides = 0 if does == AND else 1  # whatever the other one is
    one, other = tags[top], tags[top + 1]
    if one == ERROR or (one == THERE and ints[top] == decides):
        return
    if other == THERE and ints[top + 1] == decides:
        ints[top], tags[top] = decides, THERE
    elif other == ERROR:
        tags[top] = ERROR
    elif one == NULL or other == NULL:
        tags[top] = NULL


def combine(does: int, at: int, top: int, program: Program, machine: Machine) -> None:
    """Put what becomes of the two upper values in the place of the lower one."""
    ints, floats, tags = machine.ints, machine.floats, machine.tags
    one, other = tags[top], tags[top + 1]
    if does in (DIVIDE, MODULO, QUOTIENT):  # the divisor is asked for first
        one, other = other, one
    if one != THERE:
        tags[top] = one
    elif other != THERE:
        tags[top] = other
    elif does in (EQUAL, LESS, LESS_OR_EQUAL):
        if program.second[at]:
            ints[top] = are_in_order(does, floats[top], floats[top + 1])
        else:
            ints[top] = compare(does, ints[top], ints[top + 1])
    elif program.second[at]:
        tags[top] = compute_floats(does, floats[top], floats[top + 1], floats, top)
    else:
        tags[top] = whole(does, ints[top], ints[top + 1], program.first[at], ints, top)


def apply_unary(does: int, at: int, top: int, program: Program, machine: Machine) -> None:
    """Change the uppermost value."""
    ints, floats, tags = machine.ints, machine.floats, machine.tags
    if does == IS_NULL:
        if tags[top] != ERROR:
            ints[top] = tags[top] == NULL
            tags[top] = THERE
    elif tags[top] != THERE:
        return
    elif does == NOT:
        ints[top] = 1 - ints[top]
    elif does == TO_FLOAT:
        floats[top] = float(ints[top])
    elif program.second[at]:
        floats[top] = -floats[top]
    else:
        tags[top] = whole(SUBTRACT, 0, ints[top], program.first[at], ints, top)


def fold_in(
    keeps: int, is_float: int, count: int, ints: Any, floats: Any, place: int,
    whole_value: int, float_value: float,
) -> int:  # fmt: skip
    """Add a value to an aggregate that has ``count`` of them; return THERE or ERROR."""
    if keeps == COUNT:
        return THERE
    if is_float:
        folded = floats[place]
        if count == 0:
            floats[place] = float_value
        elif keeps == SUM:
            floats[place] = folded + float_value
        elif keeps == MIN:
            floats[place] = float_value if are_in_order(LESS, float_value, folded) else folded
        else:
            floats[place] = float_value if are_in_order(LESS, folded, float_value) else folded
        return THERE
    folded = ints[place]
    if count == 0:
        ints[place] = whole_value
    elif keeps == SUM:
        return whole(ADD, folded, whole_value, 64, ints, place)
    elif keeps == MIN:
        ints[place] = min(folded, whole_value)
    else:
        ints[place] = max(folded, whole_value)
    return THERE


def aggregate(number: int, candidate: int, asked: Asked, top: int, work: Work) -> None:
    """Put an aggregate on the stack, with the row that is asked for if it is one of its rows."""
    program, rows, machine, pool = work.program, work.rows, work.machine, asked.pool
    place, count = asked.item * work.settings.aggregates + number, 0
    if pool.start[asked.item] != NO_ROW:
        count = pool.counts[place]
        machine.ints[top], machine.floats[top] = pool.ints[place], pool.floats[place]
    keeps, tag = program.keeps[number], THERE
    if count == OVERFLOWED:
        tag = ERROR
    elif program.of[number] in (EVERY, candidate):
        column = program.reads[number]
        at = max(column, 0) * rows.ts.size + asked.row
        if column < 0 or rows.valid[at]:
            tag = fold_in(
                keeps, program.is_float[number], count, machine.ints, machine.floats, top,
                rows.ints[at], rows.floats[at],
            )  # fmt: skip
            count += 1
    if keeps == COUNT:
        machine.ints[top] = count
    elif count == 0 and tag == THERE:
        tag = NULL
    machine.tags[top] = tag


def push_row_value(at: int, candidate: int, asked: Asked, top: int, work: Work) -> None:
    """Push the value of the row that FIRST or LAST references; null without such a row."""
    program, rows, machine = work.program, work.rows, work.machine
    variable = program.first[at]
    begin, end = first_row(asked, variable, work.settings), end_row(asked, variable, work.settings)
    found = row_of(program.does[at], variable, program.second[at], begin, end, asked.row, candidate)
    machine.tags[top] = NULL
    if found != NO_ROW:
        place = program.column[at] * rows.ts.size + found
        if rows.valid[place]:
            machine.tags[top] = THERE
            machine.ints[top], machine.floats[top] = rows.ints[place], rows.floats[place]


def fill_null(top: int, machine: Machine) -> None:
    """Put the upper one of two values in the place of the lower one if that is null."""
    ints, floats, tags = machine.ints, machine.floats, machine.tags
    if tags[top] == NULL:
        ints[top], floats[top], tags[top] = ints[top + 1], floats[top + 1], tags[top + 1]


def choose(top: int, machine: Machine) -> None:
    """Put one of the two upper values in the place of the one below, which says which."""
    ints, floats, tags = machine.ints, machine.floats, machine.tags
    if tags[top] != ERROR:
        source = top + 1 if tags[top] == THERE and ints[top] else top + 2
        ints[top], floats[top], tags[top] = ints[source], floats[source], tags[source]


def holds(candidate: int, asked: Asked, work: Work) -> int:
    """Return whether a row may be taken for a variable: 1 or 0; -1: its condition has no value."""
    program, machine, top = work.program, work.machine, -1
    ints, tags = machine.ints, machine.tags
    for at in range(program.begins[candidate], program.begins[candidate + 1]):
        does = program.does[at]
        top += GROWS[does]
        if does <= FIRST:
            push_row_value(at, candidate, asked, top, work)
        elif does == AGGREGATE:
            aggregate(program.first[at], candidate, asked, top, work)
        elif does == CONSTANT:
            constant = program.first[at]
            ints[top], machine.floats[top] = program.ints[constant], program.floats[constant]
            tags[top] = NULL if program.is_null[constant] else THERE
        elif does <= IS_NULL:
            apply_unary(does, at, top, program, machine)
        elif does == CHOOSE:
            choose(top, machine)
        elif does <= OR:
            connect(does, top, machine)
        elif does == FILL:
            fill_null(top, machine)
        else:
            combine(does, at, top, program, machine)
    if top < 0:
        return 1
    if tags[0] == ERROR:
        return -1
    return 1 if tags[0] == THERE and ints[0] else 0
