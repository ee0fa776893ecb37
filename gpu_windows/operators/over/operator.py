"""The over strategy on bounded input, and its results."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.base import Emission, Operator
from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.columns.lowering import lower
from gpu_windows.operators.columns.numeric import to_numeric
from gpu_windows.operators.columns.row_status import status_of_times
from gpu_windows.operators.counters import Rejected
from gpu_windows.operators.device import Kernels, encode_keys
from gpu_windows.operators.over.framing import FramedRows, Framing, States
from gpu_windows.operators.results import TRACE
from gpu_windows.operators.state.large_strings import take_rows
from gpu_windows.planning.kinds.over import OverPlan
from gpu_windows.rules import LONG_MAX
from gpu_windows.vocabulary.frames import Rows

Ints = NDArray[np.int64]


class OverResults:
    """Makes results of rows and of the partials over their frames.

    Parameters
    ----------
    plan : OverPlan
    trace : bool
        Whether results carry `gpu_windows.operators.results.TRACE`.
    """

    def __init__(self, plan: OverPlan, *, trace: bool) -> None:
        self._query, self._over = plan.query, plan.query.over
        self.schema = plan.result_schema
        if trace:
            self.schema = pa.schema([*self.schema, *TRACE])

    def table(self, rows: pa.Table, states: States) -> pa.Table:
        """Return the results of rows, in their order."""
        names = (*self._query.keys, self._query.time, *self._over.carried)
        columns = [rows.column(name) for name in names]
        for each in self._over.columns:
            found = (states[each.frame, partial] for partial in each.partials)
            columns.append(
                lower(
                    each.combined_aggregate,
                    dict(zip(each.combined_aggregate.partials, found, strict=True)),
                )
            )
        if len(self.schema) > len(columns):
            fired, time = TRACE
            columns.append(pa.array(["event_time"] * len(rows), fired.type))
            columns.append(rows.column(self._query.time).cast(time.type))
        return pa.Table.from_arrays(columns, names=self.schema.names).cast(self.schema)


class BoundedOverOperator(Operator):
    """Aggregates over frames of bounded input; all rows are emitted at the end.

    Parameters
    ----------
    plan : OverPlan
    kernels : Kernels
    trace : bool
        Whether results carry `gpu_windows.operators.results.TRACE`.
    in_order : bool
        Whether results come in order of time; otherwise in order of arrival, unless a frame is the
        row alone, which is how rows are sorted.
    """

    def __init__(
        self, plan: OverPlan, kernels: Kernels, *, trace: bool = False, in_order: bool = True
    ) -> None:
        # configuration
        sorts = all(frame == Rows(0) for frame in plan.query.over.frames)  # and does nothing else
        self._plan, self._kernels, self._in_order = plan, kernels, in_order or sorts
        self._results = OverResults(plan, trace=trace)
        self._framing = Framing(plan, kernels, plan.query.over.frames)
        # state
        self._buffered: list[pa.Table] = []

    def process(self, batch: pa.Table) -> Iterator[Emission]:
        """Buffer rows; results come at the end."""
        times = to_numeric(batch.column(self._plan.query.time))
        rejected = Rejected.of(status_of_times(times, self._plan.query.usable_ticks))
        self._buffered.append(
            batch.filter(pa.array(rejected.accepted_mask)) if len(rejected) else batch
        )
        yield Emission.without_results(self._results.schema, batch, rejected)

    def advance_watermark(self, watermark: int) -> Iterator[Emission]:
        """Emit all rows at the end of time."""
        if watermark != LONG_MAX or not self._buffered:
            return
        rows, self._buffered = pa.concat_tables(self._buffered), []
        rows = rows.combine_chunks()  # else results come in batches as small as those of the input
        query = self._plan.query
        ts = rows.column(query.time).to_numpy()
        if self._in_order:
            order = np.argsort(ts, kind="stable")
            rows, ts = take_rows(rows, order), ts[order]
        keys = KeyEncoder([query.schema.field(name).type for name in query.keys])
        codes = encode_keys(self._kernels, keys, [rows.column(name) for name in query.keys])
        framed = FramedRows(codes, ts, self._framing.lift(rows))
        results = self._results.table(rows, self._framing.combine(framed))
        yield Emission.of_results(results, self._kernels.take_counters())

    def state_size(self) -> dict[str, int]:
        """Return the number of buffered rows."""
        return {"rows": sum(map(len, self._buffered))}
