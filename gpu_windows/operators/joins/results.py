"""Results of interval and temporal joins: rows side by side."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.base import Emission
from gpu_windows.operators.counters import Counters
from gpu_windows.operators.joins.rows import JoinRows
from gpu_windows.operators.results import TRACE, add_trace
from gpu_windows.planning.kinds.pairs import IntervalJoinPlan, TemporalJoinPlan

Ints = NDArray[np.int64]


class PairResults:
    """Makes results of rows of both sides.

    Parameters
    ----------
    plan : IntervalJoinPlan or TemporalJoinPlan
    trace : bool
        Whether results carry `gpu_windows.operators.results.TRACE`.
    """

    def __init__(self, plan: IntervalJoinPlan | TemporalJoinPlan, *, trace: bool) -> None:
        self._keys, self._pair = plan.query.keys, plan.query.join.pair
        self._schema = plan.result_schema
        self._trace = TRACE if trace else ()

    @property
    def nothing(self) -> pa.Table:
        """No results."""
        return pa.schema([*self._schema, *self._trace]).empty_table()

    def pair_rows(self, left: JoinRows, i: Ints, right: JoinRows, j: Ints) -> pa.Table:
        """Return pairs, by the indices of their rows."""
        return self.side_by_side(left, i, right.table.select(self._pair.right).take(pa.array(j)))

    def side_by_side(self, left: JoinRows, i: Ints, right: pa.Table) -> pa.Table:
        """Return left rows ``i`` beside the same number of right rows."""
        left_rows = left.table.select([*self._keys, *self._pair.left]).take(pa.array(i))
        return pa.Table.from_arrays(
            [*left_rows.columns, *right.columns],
            names=[*left_rows.column_names, *right.column_names],
        )

    def fill_unmatched(self, rows: JoinRows) -> pa.Table:
        """Return results of unmatched rows, with nulls for the other side."""
        arrays = [
            rows.table.column(field.name)
            if field.name in rows.table.column_names
            else pa.nulls(len(rows), field.type)
            for field in self._schema
        ]
        return pa.Table.from_arrays(arrays, names=self._schema.names)

    def make_emission(self, results: pa.Table, cause: str) -> Emission:
        """Return an emission of results."""
        table = results.cast(self._schema)
        given = add_trace(table, cause) if self._trace else table
        return Emission(given, pa.table({}), Counters(fired=len(table)))
