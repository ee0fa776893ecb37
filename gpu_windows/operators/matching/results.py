"""Matches as result rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.functions.patterns.match import (
    Measure,
    RowValue,
    VariableAggregate,
    VariableExtreme,
)
from gpu_windows.kernels.backend import select
from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.columns.lowering import lower
from gpu_windows.operators.columns.numeric import sortable
from gpu_windows.operators.columns.partial_columns import column_of
from gpu_windows.operators.columns.ranges import ranges
from gpu_windows.operators.columns.reducing import reduce_lists
from gpu_windows.operators.results import TRACE
from gpu_windows.planning.kinds.match import MatchPlan
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.rules.pattern_matching.layout import EVERY

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class SortedRows:
    """Rows of a run: stored ones, then those that are due, and their order.

    Parameters
    ----------
    table : pyarrow.Table
    order : int64[n]
        By key, and for each key in order of time.
    codes : int64[k]
        The keys.
    begins : int64[k + 1]
        Where the rows of each begin in this order.
    stored_counts : int64[k]
        Number of stored rows of each key.
    ts, numbers : int64[n]
        In this order: times, and the index among the due rows, -1 for stored ones.
    """

    table: pa.Table
    order: Ints
    codes: Ints
    begins: Ints
    stored_counts: Ints
    ts: Ints
    numbers: Ints


@dataclass(frozen=True)
class Matches:
    """Matches in the rows of a run, which they number by their order.

    Parameters
    ----------
    rows : SortedRows
    codes : int64[m]
        The key of each match.
    start : int64[m]
        The first row of each match.
    ends : int64[m, variables]
        One after the last row of each variable.
    cause : int64[m]
        The row that completed it, or -1 for the watermark.
    """

    rows: SortedRows
    codes: Ints
    start: Ints
    ends: Ints
    cause: Ints

    def __len__(self) -> int:
        return len(self.start)

    def bounds(self, variable: int) -> tuple[Ints, Ints]:
        """Return the first row of a variable in each match, and the one after its last."""
        if variable == EVERY:
            return self.start, self.ends[:, -1]
        begin = self.start if variable == 0 else self.ends[:, variable - 1]
        return begin, self.ends[:, variable]

    def order_of_emission(self) -> Ints:
        """Return the order in which the matches of all keys are emitted."""
        has_row = self.cause >= 0
        time = np.where(has_row, self.rows.ts[self.cause], LONG_MAX)
        number = np.where(has_row, self.rows.numbers[self.cause], LONG_MAX)
        return np.lexsort((number, time))

    def take(self, places: Ints) -> Matches:
        """Return some matches."""
        parts = (self.codes, self.start, self.ends, self.cause)
        return Matches(self.rows, *(part[places] for part in parts))


class MatchResults:
    """Makes results of matches.

    Parameters
    ----------
    plan : MatchPlan
    trace : bool
        Whether results carry `gpu_windows.operators.results.TRACE`.
    """

    def __init__(self, plan: MatchPlan, *, trace: bool) -> None:
        self._match, self._trace = plan.query.match, trace
        self._schema = pa.schema([*plan.result_schema, *(TRACE if trace else ())])

    @property
    def nothing(self) -> pa.Table:
        """No results."""
        return self._schema.empty_table()

    def table(self, matches: Matches, keys: KeyEncoder, *, in_order: bool) -> pa.Table:
        """Return a row for every match."""
        if in_order:
            matches = matches.take(matches.order_of_emission())
        columns: list[Any] = keys.decode(matches.codes)
        columns += (_OF_KIND[type(each)](each, matches) for each in self._match.measures)
        if self._trace:
            fired, time = TRACE
            columns.append(pa.array(["event_time"] * len(matches), fired.type))
            columns.append(pa.array(matches.rows.ts[matches.ends[:, -1] - 1], time.type))
        pairs = zip(columns, self._schema, strict=True)
        columns = [each if each.type == f.type else each.cast(f.type) for each, f in pairs]
        return pa.table(columns, schema=self._schema)


def _pick_values(measure: RowValue, matches: Matches) -> pa.ChunkedArray:
    """Return a column of one row of each match; null where there is no such row."""
    reference = measure.row
    begin, end = matches.bounds(reference.variable)
    row = begin + reference.offset if reference.from_first else end - 1 - reference.offset
    is_there = (row >= begin) & (row < end)
    of_rows = matches.rows.order[np.where(is_there, row, 0)]
    mask = None if is_there.all() else ~is_there
    return matches.rows.table.column(measure.column).take(pa.array(of_rows, mask=mask))


def _fold_values(measure: VariableAggregate, matches: Matches) -> pa.Array:
    """Return an aggregate over the rows of a variable in each match."""
    begin, end = matches.bounds(measure.variable)
    bound, lengths = measure.bound, end - begin
    rows = matches.rows.table
    rows = rows.select(bound.columns) if bound.columns else rows
    rows = rows.take(pa.array(matches.rows.order[ranges(begin, lengths)]))
    columns = [column_of(partial, "") for partial in bound.partials]
    states = reduce_lists(select("cpu"), columns, rows, lengths)
    return lower(bound, dict(zip(bound.partials, states, strict=True)))


def _extreme(measure: VariableExtreme, matches: Matches) -> pa.ChunkedArray:
    """Return the least or greatest value of the rows of a variable in each match; nulls last."""
    begin, end = matches.bounds(measure.variable)
    lengths = end - begin
    rows = matches.rows.order[ranges(begin, lengths)]
    values = matches.rows.table.column(measure.column).take(pa.array(rows))
    ranks = sortable(values)
    is_null = values.is_null().to_numpy()
    ranks = np.where(is_null, LONG_MIN, ranks if measure.greatest else ~ranks)
    order = np.lexsort((ranks, np.repeat(np.arange(len(lengths)), lengths)))
    last = np.cumsum(lengths) - 1
    places = order[last[lengths > 0]]
    found = np.zeros(len(lengths), np.int64)
    found[lengths > 0] = rows[places]
    return matches.rows.table.column(measure.column).take(pa.array(found, mask=lengths == 0))


#: Functions that make a result column, by class of measure.
_OF_KIND: Mapping[type[Measure], Callable[[Any, Matches], Any]] = {
    RowValue: _pick_values,
    VariableAggregate: _fold_values,
    VariableExtreme: _extreme,
}
