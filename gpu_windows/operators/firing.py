"""What the columnar strategies share: rows into a table of partials, partials into results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpu_windows import rules
from gpu_windows.aggregates import Partial
from gpu_windows.functions import Aggregates
from gpu_windows.operators.base import TRACE, Emission, Operator
from gpu_windows.operators.device import Kernels, Map
from gpu_windows.operators.lowering import lower
from gpu_windows.operators.partials import State
from gpu_windows.operators.slice_table import Rejected, SliceTable
from gpu_windows.plan import Plan
from gpu_windows.query import REASON
from gpu_windows.rules import LONG_MIN

_REASONS = {
    rules.LATE: "late",
    rules.NULL: "null_timestamp",
    rules.OUT_OF_RANGE: "out_of_range_timestamp",
}


class FiringOperator(Operator):
    """An operator whose windows fire once, at their end, from a table of partials.

    Parameters
    ----------
    plan : Plan
    kernels : Kernels
    table : SliceTable
        Its state.
    trace : bool
        Whether results carry the columns `TRACE`.
    """

    def __init__(self, plan: Plan, kernels: Kernels, table: SliceTable, *, trace: bool) -> None:
        # configuration
        self._plan = plan
        self._kernels = kernels
        self._trace = trace
        # state
        self._table = table
        self._watermark = LONG_MIN

    def process(self, batch: pa.Table) -> Iterator[Emission]:
        """Take rows; results wait for the watermark."""
        rejected = self._table.add_rows(batch, self._watermark)
        counters = rejected.counts() + self._kernels.counted()
        late = self._given_back(batch, rejected)
        yield Emission(self._schema.empty_table(), late, counters)

    def _given_back(self, batch: pa.Table, rejected: Rejected) -> pa.Table:
        """Return the rows that are given back, and the reason; those in gaps are not."""
        late, reasons = batch.slice(0, 0), []
        if len(rejected):
            given_back = np.isin(rejected.status, list(_REASONS))
            late = batch.take(pa.array(rejected.places[given_back]))
            reasons = [_REASONS[status] for status in rejected.status[given_back].tolist()]
        return late.append_column(REASON, pa.array(reasons, pa.string()))

    def merge(self, partials: pa.Table) -> None:
        """Take partials that another task made."""
        self._table.add_partials(partials)

    def state_size(self) -> dict[str, int]:
        """Return how many entries of the table are held."""
        return {"entries": self._table.waiting}

    @property
    def _schema(self) -> pa.Schema:
        schema = self._plan.result_schema
        return pa.schema([*schema, *TRACE]) if self._trace else schema

    def _results(
        self,
        keys: list[pa.Array],
        bounds: list[Any],
        states: Mapping[Partial, State],
        each: Map,
        firing: tuple[str, Any, str] = ("event_time", 0, "on_time"),
    ) -> pa.Table:
        """Return the results of some windows.

        Parameters
        ----------
        keys : list of pyarrow.Array
        bounds : [starts, ends]
            int64[n], or None for windows without bounds.
        states : mapping of Partial to State
            Of every window.
        each : Map
            Makes several results at once.
        firing : (cause, number, pane)
            Of the trace and of the firing columns; by default every window fires once, at its end.
        """
        cause, number, pane = firing
        function = self._plan.query.function
        bound = function.built_in if isinstance(function, Aggregates) else ()
        windows = len(keys[0])
        none = pa.nulls(windows, pa.int64())
        start, end = (none if part is None else pa.array(part) for part in bounds)
        columns = [*keys, start, end]
        columns += each(lambda aggregate: lower(aggregate, states), bound)
        if self._plan.query.firing_columns:
            columns += [pa.array(np.broadcast_to(number, windows)), pa.repeat(pane, windows)]
        if self._trace:
            columns += [pa.repeat(cause, windows), pc.subtract(end, 1)]
        return pa.table(columns, schema=self._schema)
