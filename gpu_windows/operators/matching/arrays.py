"""A pattern, its conditions and rows as the arrays of an automaton."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import types

from gpu_windows.column_types.time_units import to_microseconds
from gpu_windows.functions.patterns.automaton import max_branches
from gpu_windows.functions.patterns.match import Match
from gpu_windows.functions.patterns.program import Conditions, Instruction
from gpu_windows.operators.columns.numeric import one_chunk, to_numeric
from gpu_windows.rules.pattern_matching.layout import (
    NOWHERE,
    Automaton,
    Program,
    Rows,
    Settings,
)

Ints = NDArray[np.int64]


def automaton_of(match: Match) -> Automaton:
    """Return the states of a pattern."""
    states = match.states
    return Automaton(
        variable=_ints(each.variable for each in states),
        take_to=_ints(each.take_to for each in states),
        take_unless=_ints(_bits(each.take_unless) for each in states),
        proceed_to=_ints(
            NOWHERE if each.proceed_to is None else each.proceed_to for each in states
        ),
        proceed_unless=_ints(_bits(each.proceed_unless) for each in states),
    )


def program_of(conditions: Conditions) -> Program:
    """Return the instructions of conditions."""
    code: list[Instruction] = [each for program in conditions.programs for each in program]
    constants, aggregates = conditions.constants, conditions.aggregates
    return Program(
        begins=np.cumsum([0, *map(len, conditions.programs)]).astype(np.int64),
        does=_ints(each.does for each in code),
        first=_ints(each.first for each in code),
        second=_ints(each.second for each in code),
        column=_ints(each.column for each in code),
        ints=_ints(whole for whole, _, _ in constants),
        floats=np.array([real for _, real, _ in constants], np.float64),
        is_null=_ints(is_null for _, _, is_null in constants),
        of=_ints(each.variable for each in aggregates),
        keeps=_ints(each.keeps for each in aggregates),
        reads=_ints(each.column for each in aggregates),
        is_float=_ints(each.is_float for each in aggregates),
    )


def settings_of(match: Match, watermark: int) -> Settings:
    """Return the numbers of a query."""
    return Settings(
        variables=len(match.pattern.variables),
        final=len(match.states),
        branches=max_branches(match.states),
        aggregates=len(match.conditions.aggregates),
        skips=match.after.skip.value,
        skips_to=match.after.variable or 0,
        within=match.within or 0,
        watermark=watermark,
    )


def rows_of(conditions: Conditions, rows: pa.Table, ts: Ints, begins: Ints, seen: Ints) -> Rows:
    """Return the values of rows that conditions read, for kernels.

    Parameters
    ----------
    conditions : Conditions
    rows : pyarrow.Table
        Rows by key, those of a key in order.
    ts : int64[n]
        Their times.
    begins : int64[keys + 1]
        Offset of the rows of each key.
    seen : int64[keys]
        Number of them that the automaton has already processed.
    """
    count, columns = len(ts), [_plain(rows.column(name)) for name in conditions.columns]
    # one at least: what counts all rows reads none, and would read the first
    values = np.zeros(count * max(len(columns), 1), np.int64)
    valid = np.ones(len(values), np.int8)
    ranks = _ranks([columns[place] for place in sorted(conditions.ranked)])
    ranked = dict(zip(sorted(conditions.ranked), ranks, strict=True))
    for place, column in enumerate(columns):
        here = slice(place * count, (place + 1) * count)
        if column.null_count:
            valid[here] = column.is_valid().to_numpy(zero_copy_only=False)
        values[here] = (
            ranked[place] if place in ranked else _bits_of(column, conditions.columns[place])
        )
    return Rows(begins, seen, ts, values, values.view(np.float64), valid)


def _bits_of(column: pa.Array, name: str) -> Ints:
    """Return the 64 bits of values, floats as they are; see `to_microseconds` for errors."""
    dtype = column.type
    if types.is_null(dtype):
        return np.zeros(len(column), np.int64)
    column = to_microseconds(column, name, "a time or duration in a condition")
    if types.is_timestamp(dtype):
        column = column.cast(pa.timestamp("us", dtype.tz), safe=False)
    if types.is_duration(dtype):
        column = column.cast(pa.duration("us"), safe=False)
    found: NDArray[Any] = to_numeric(column).values
    return np.ascontiguousarray(found).view(np.int64)


def _ranks(columns: Sequence[pa.Array]) -> list[Ints]:
    """Return numbers in the order of values, for columns of each type values."""
    found: list[Ints] = [np.empty(0, np.int64)] * len(columns)
    for dtype in {column.type for column in columns}:
        places = [i for i, column in enumerate(columns) if column.type == dtype]
        values = pa.concat_arrays([columns[i] for i in places]).dictionary_encode()
        order = pc.rank(values.dictionary, sort_keys="ascending", tiebreaker="dense")
        codes = order.take(values.indices).fill_null(0).to_numpy(zero_copy_only=False)
        ends = np.cumsum([len(columns[i]) for i in places])
        for i, part in zip(places, np.split(codes.astype(np.int64), ends[:-1]), strict=True):
            found[i] = part
    return found


def _plain(column: pa.ChunkedArray) -> pa.Array:
    """Return values in one array; strings with large offsets."""
    if types.is_string(column.type):
        column = column.cast(pa.large_string())
    return one_chunk(column)


def _bits(places: frozenset[int]) -> int:
    return sum(1 << place for place in places)


def _ints(values: Any) -> Ints:
    return np.array([*values], np.int64)
