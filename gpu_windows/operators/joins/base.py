"""Base of the operators of joins in time: rows of two sides, and their results side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.functions.interval_join import IntervalJoinSpec
from gpu_windows.functions.temporal_join import TemporalJoinSpec
from gpu_windows.functions.two_inputs import SIDE, TIME
from gpu_windows.operators.base import Emission, StatefulOperator
from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.columns.numeric import to_numeric
from gpu_windows.operators.columns.row_status import status_of_times
from gpu_windows.operators.counters import Counters, Rejected, rejected_rows
from gpu_windows.operators.device import Kernels
from gpu_windows.operators.joins.join_index import NULLS, JoinIndex
from gpu_windows.operators.joins.matching import Matching
from gpu_windows.operators.joins.nearest import Nearest
from gpu_windows.operators.joins.rows import JoinRows
from gpu_windows.operators.joins.side import Side
from gpu_windows.operators.joins.stored_side import Needs
from gpu_windows.operators.results import TRACE, add_trace
from gpu_windows.operators.state.log import StateLog
from gpu_windows.planning.plan import Plan
from gpu_windows.rules import ACCEPTED

Ints = NDArray[np.int64]
Statuses: TypeAlias = NDArray[np.int8]


class JoinOperator(StatefulOperator[StateLog]):
    """Rows of two sides that match in time.

    Parameters
    ----------
    plan : Plan
    join : IntervalJoinSpec or TemporalJoinSpec
        What is joined.
    kernels : Kernels
    upper : int
        See `Matching`.
    right : sequence of str
        The columns of right rows, beside keys and time.
    retention : pair of int
        How long a row of each side is stored after its time, in ticks.
    needs : pair of Needs
    trace : bool
        Whether results carry `gpu_windows.operators.results.TRACE`.
    """

    def __init__(
        self,
        plan: Plan,
        join: IntervalJoinSpec | TemporalJoinSpec,
        kernels: Kernels,
        *,
        upper: int,
        right: Sequence[str],
        retention: Sequence[int],
        needs: Sequence[Needs],
        trace: bool,
    ) -> None:
        # configuration
        query, keys, self._pair = plan.query, plan.query.keys, join.pair
        self._keys, self._usable_ticks = keys, join.usable_ticks
        self._kernels, self._matching = kernels, Matching(kernels, join.lower, upper)
        self._columns = [(*keys, TIME, *each) for each in (join.pair.left, right)]
        self._schema, self._trace = plan.result_schema, TRACE if trace else ()
        # state
        encoder = KeyEncoder([query.schema.field(name).type for name in keys])
        nulls = (None, None) if join.pair.null_safe else NULLS
        self._indexes = [
            JoinIndex(keys, encoder, self._matching, null, plan.lacking_of(names))
            for null, names in zip(nulls, self._columns, strict=True)
        ]
        self._left, self._right = self._sides = [
            *map(Side, range(2), retention, needs, self._indexes)
        ]

    # ---- rows

    def _status_of(self, batch: pa.Table) -> Statuses:
        """Return the status of rows: whether they have a usable time."""
        return status_of_times(to_numeric(batch.column(TIME)), self._usable_ticks)

    def _find_places(self, batch: pa.Table, status: Statuses) -> list[Ints]:
        """Return the indices of the accepted rows of each side."""
        is_left = batch.column(SIDE).to_numpy()
        return [np.flatnonzero((status == ACCEPTED) & (is_left == side)) for side in (True, False)]

    def _select(self, batch: pa.Table, places: Ints, side: int) -> pa.Table:
        """Return rows of a batch, with the columns of a side."""
        return batch.select(self._columns[side]).take(pa.array(places)).combine_chunks()

    def _acknowledge(self, batch: pa.Table, status: Statuses) -> Emission:
        """Return the emission that acknowledges a batch: rejected rows and counters."""
        rejected = Rejected.of(status)
        counters = rejected.counts() + self._kernels.take_counters()
        none = pa.schema([*self._schema, *self._trace]).empty_table()
        return Emission(none, rejected_rows(batch, rejected), counters)

    def _find_nearest(self, left: JoinRows, right: Iterable[JoinRows], direction: int) -> Nearest:
        """Return the nearest right row of each left row; ``right``: runs in order of arrival."""
        best = Nearest(left.ts, direction)
        for rows in right:
            best.offer(rows, self._matching.find_nearest(left, rows, direction))
        return best

    def state_size(self) -> dict[str, int]:
        """Return the number of stored rows of each side."""
        return {side.kind: len(side) for side in self._sides}

    # ---- results

    def _pair_rows(self, left: JoinRows, i: Ints, right: JoinRows, j: Ints) -> pa.Table:
        """Return pairs, by the indices of their rows."""
        return self._side_by_side(left, i, right.table.select(self._pair.right).take(pa.array(j)))

    def _side_by_side(self, left: JoinRows, i: Ints, right: pa.Table) -> pa.Table:
        """Return left rows ``i`` beside the same number of right rows."""
        left_rows = left.table.select([*self._keys, *self._pair.left]).take(pa.array(i))
        return pa.Table.from_arrays(
            [*left_rows.columns, *right.columns],
            names=[*left_rows.column_names, *right.column_names],
        )

    def _fill_unmatched(self, rows: JoinRows) -> pa.Table:
        """Return results of unmatched rows, with nulls for the other side."""
        arrays = [
            rows.table.column(field.name)
            if field.name in rows.table.column_names
            else pa.nulls(len(rows), field.type)
            for field in self._schema
        ]
        return pa.Table.from_arrays(arrays, names=self._schema.names)

    def _make_emission(self, results: pa.Table, cause: str) -> Emission:
        """Return an emission of results."""
        table = results.cast(self._schema)
        given = add_trace(table, cause) if self._trace else table
        return Emission(given, pa.table({}), Counters(fired=len(table)))
