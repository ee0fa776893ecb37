"""What the reference operators of joins in time share: the rows that came, and their pairs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from gpu_windows.operators.base import Emission, Operator
from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.counters import Counters
from gpu_windows.operators.results import add_trace
from gpu_windows.planning.kinds.pairs import IntervalJoinPlan, TemporalJoinPlan

#: Places of a left and a right row; -1 is no row.
Places = tuple[int, int]


class PairRowsOperator(Operator):
    """Remembers the rows of both sides, of which pairs are places.

    Parameters
    ----------
    plan : IntervalJoinPlan or TemporalJoinPlan
    trace : bool
        Whether results carry `gpu_windows.operators.results.TRACE`.
    """

    def __init__(self, plan: IntervalJoinPlan | TemporalJoinPlan, *, trace: bool) -> None:
        self._pair = plan.query.join.pair
        self._keys = plan.query.keys
        self._schema = plan.result_schema
        self._trace = trace
        self._encoder = KeyEncoder([plan.query.schema.field(name).type for name in self._keys])
        #: All rows that came; what is kept are places in it.
        self._rows = plan.query.in_ticks(plan.input_columns).empty_table()
        self._codes: list[int] = []

    def _append(self, batch: pa.Table) -> int:
        """Remember rows; return the place of the first."""
        first = len(self._codes)
        rows = batch.select(self._rows.column_names).cast(self._rows.schema)
        self._rows = pa.concat_tables([self._rows, rows])
        keys = [batch.column(name) for name in self._keys]
        codes = self._encoder.encode(keys)
        for key in () if self._pair.null_safe else keys:
            codes = np.where(key.is_null().to_numpy(), -1, codes)
        self._codes += codes.tolist()
        return first

    def _sides(self, pairs: Sequence[Places]) -> pa.Table:
        """Return rows side by side."""
        sides = ([each[side] for each in pairs] for side in (0, 1))
        left, right = (pa.array([None if i < 0 else i for i in s], pa.int64()) for s in sides)
        return self._pair.table(self._rows, left, self._rows, right)

    def _table(self, pairs: Sequence[Places]) -> pa.Table:
        """Return the results of pairs."""
        sides = self._sides(pairs)
        one = pa.array([i if i >= 0 else j for i, j in pairs], pa.int64())
        results = self._rows.select(self._keys).take(one)
        for name in self._schema.names[len(self._keys) :]:
            results = results.append_column(name, sides.column(name))
        return results.cast(self._schema)

    def _emission(self, pairs: Sequence[Places], cause: str) -> Emission:
        table = self._table(pairs)
        results = add_trace(table, cause) if self._trace else table
        return Emission(results, pa.table({}), Counters(fired=len(table)))
