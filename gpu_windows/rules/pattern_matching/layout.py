"""Array layout of an automaton, its conditions, rows and matches."""

from __future__ import annotations

from typing import Any, NamedTuple

#: Rows of all variables, where an expression names none.
EVERY = -1
#: A first row that a partial match has not: it has taken none.
NO_ROW = -1
#: What a state goes to where it goes nowhere.
NOWHERE = -1

#: Which partial matches a match ends (AFTER MATCH SKIP): those that begin with its first row or
#: before, up to its last row, or before the first or the last row of a variable.
TO_NEXT_ROW, PAST_LAST_ROW, TO_FIRST, TO_LAST = range(4)

#: What a run ended with: its work was done; a condition has no value; there is no row to skip to;
#: it would skip to the first row of a match, and find it for ever. A part of it: no match is too
#: long.
DONE, NO_VALUE, NOTHING_TO_SKIP_TO, FOR_EVER, NOTHING_OVER = range(5)
#: Or that memory was too small: for partial matches, complete ones, those that are given, or for
#: what is kept.
FEW_PARTIALS, FEW_COMPLETED, FEW_GIVEN, FEW_STORED = range(5, 9)

#: What an instruction does: puts a value on the stack, changes the uppermost one, chooses between
#: two, connects two truths, takes the other one for null, or combines two values.
LAST, FIRST, AGGREGATE, CONSTANT = range(4)
TO_FLOAT, NEGATE, NOT, IS_NULL = range(4, 8)
CHOOSE, AND, OR, FILL = range(8, 12)
(
    ADD, SUBTRACT, MULTIPLY, DIVIDE, MODULO, QUOTIENT, EQUAL, LESS, LESS_OR_EQUAL,
) = range(12, 21)  # fmt: skip
#: By how much the stack grows, by instruction.
GROWS = (1, 1, 1, 1, 0, 0, 0, 0, -2, *(-1,) * 12)
#: What an aggregate over the rows of a variable keeps.
COUNT, SUM, MIN, MAX = range(4)
#: How many values a sum has that does not fit: it has no value.
OVERFLOWED = -1
#: What a value on the stack is: there, null, or an error.
THERE, NULL, ERROR = range(3)


class Automaton(NamedTuple):
    """The states of a pattern; the last number is the final state, which has no entry here.

    A state may take a row for its variable, and go to another; and it may hand a row on to the next
    state without taking it. Each only if rows are not for some other variables, a bit each: those
    of greedy loops before it.
    """

    variable: Any  # int64[states]
    take_to: Any
    take_unless: Any
    proceed_to: Any  # NOWHERE: it does not
    proceed_unless: Any


class Program(NamedTuple):
    """The conditions of all variables, each in postfix notation."""

    begins: Any  # int64[variables + 1]: where its instructions begin; none: it is true
    does: Any  # int64[instructions]
    first: Any  # int64[instructions]: variable, aggregate, or constant
    second: Any  # int64: rows from the first or last one; bits of an integer; whether of floats
    column: Any  # int64: of `Rows`, LAST and FIRST only
    ints: Any  # int64[constants]
    floats: Any  # float64[constants]
    is_null: Any  # int64[constants]
    of: Any  # int64[aggregates]: variable
    keeps: Any  # int64[aggregates]: what
    reads: Any  # int64[aggregates]: column of `Rows`; -1: all rows count
    is_float: Any  # int64[aggregates]


class Rows(NamedTuple):
    """The rows of some keys, one key after the other, each in order."""

    begins: Any  # int64[keys + 1]
    stored: Any  # int64[keys]: how many of them were stored before
    ts: Any  # int64[rows]
    ints: Any  # int64[columns * rows], column after column; undefined where of floats
    floats: Any  # float64[columns * rows]
    valid: Any  # int8[columns * rows]


class Settings(NamedTuple):
    """The numbers of a query."""

    variables: Any
    final: Any  # the number of the final state
    branches: Any  # how many states may take one row, at most
    aggregates: Any
    skips: Any  # TO_NEXT_ROW ...
    skips_to: Any  # the variable
    within: Any  # ticks; 0: for ever
    watermark: Any


class Pool(NamedTuple):
    """Partial matches, and a heap of some of them by their first rows."""

    state: Any  # int64[room]
    start: Any  # int64[room]: first row, NO_ROW
    ends: Any  # int64[room * variables]: one after the last row
    ints: Any  # int64[room * aggregates]
    floats: Any  # float64[room * aggregates]
    counts: Any  # int64[room * aggregates]
    heap: Any  # int64[room]
    sizes: Any  # int64[2]: of the pool and of the heap


class Completed(NamedTuple):
    """Complete matches, those that have just come and those that wait for partial ones."""

    start: Any  # int64[room]
    ends: Any  # int64[room * variables]
    new: Any  # int64[room]: heap of those that have just come
    pending: Any  # int64[room]: heap
    sizes: Any  # int64[3]: of the pool and of the heaps


class Found(NamedTuple):
    """The matches that were given, in order, and what is kept of keys."""

    key: Any  # int64[room]
    cause: Any  # int64[room]: the row that gave it; -1: the watermark
    start: Any
    ends: Any  # int64[room * variables]
    partials: Any  # int64[keys + 1]: where those of a key begin among what follows
    state: Any  # int64[kept room]
    starts: Any
    partial_ends: Any
    ints: Any
    floats: Any
    counts: Any
    complete: Any  # int64[keys + 1]: where complete ones begin among what follows
    complete_starts: Any
    complete_ends: Any
    sizes: Any  # int64[3]: matches; partial; complete


class Pools(NamedTuple):
    """Partial matches before a row, and those after it."""

    now: Pool
    after: Pool


class Asked(NamedTuple):
    """A row, and the partial match that it is asked for."""

    row: Any
    pool: Pool
    item: Any


class Machine(NamedTuple):
    """Where the run is, and its scratch memory."""

    cursor: Any  # int64[3]: key; row, -1: what is kept is not loaded; which pool holds partials
    failed: Any  # int64[1]: the variable whose condition has no value
    ints: Any  # int64[depth]: the stack
    floats: Any  # float64[depth]
    tags: Any  # int64[depth]
    evaluated: Any  # int64[2]: variables whose condition is evaluated, and is true, a bit each


class Work(NamedTuple):
    """The inputs and scratch memory of a run."""

    automaton: Automaton
    program: Program
    settings: Settings
    rows: Rows
    machine: Machine


class Matches(NamedTuple):
    """Complete matches, and those that were given."""

    completed: Completed
    found: Found
