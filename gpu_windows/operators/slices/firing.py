"""Base class of the slice strategies: rows into a table of partials, partials into results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from gpu_windows.aggregates.partials import Partial
from gpu_windows.operators.base import Emission, MergesPartials, Operator
from gpu_windows.operators.columns.lowering import lower
from gpu_windows.operators.columns.partials import State
from gpu_windows.operators.counters import rejected_rows
from gpu_windows.operators.device import Kernels, Map
from gpu_windows.operators.results import TRACE, Fired, result_table
from gpu_windows.operators.slices.table import SliceTable
from gpu_windows.planning.kinds.window_plan import WindowPlan
from gpu_windows.rules import LONG_MIN


class FiringOperator(Operator, MergesPartials):
    """An operator whose windows fire once, at their end, from a table of partials.

    Parameters
    ----------
    plan : WindowPlan
    kernels : Kernels
    table : SliceTable
        Its state.
    trace : bool
        Whether results carry the columns `TRACE`.
    """

    def __init__(
        self, plan: WindowPlan, kernels: Kernels, table: SliceTable, *, trace: bool
    ) -> None:
        # configuration
        self._plan = plan
        self._kernels = kernels
        self._trace = trace
        # state
        self._table = table
        self._watermark = LONG_MIN

    def process(self, batch: pa.Table) -> Iterator[Emission]:
        """Add rows to the state; they fire when the watermark advances."""
        rejected = self._table.add_rows(batch, self._watermark)
        counters = rejected.counts() + self._kernels.take_counters()
        late = rejected_rows(batch, rejected)
        yield Emission(self._schema.empty_table(), late, counters)

    def merge(self, partials: pa.Table) -> None:
        """Add partials that another task made to the state."""
        self._table.add_partials(partials)

    def state_size(self) -> dict[str, int]:
        """Return the number of entries in memory."""
        return {"entries": self._table.entry_count}

    @property
    def _schema(self) -> pa.Schema:
        schema = self._plan.result_schema
        return pa.schema([*schema, *TRACE]) if self._trace else schema

    def _lower(self, states: Mapping[Partial, State], each: Map) -> list[pa.Array]:
        """Return the result columns of windows, given their partials; ``each`` may run several."""
        return [*each(lambda bound: lower(bound, states), self._plan.query.function.built_in)]

    def _results(
        self,
        keys: list[pa.Array],
        bounds: list[Any],
        columns: list[pa.Array],
        firing: tuple[str, Any, str] = ("event_time", 0, "on_time"),
    ) -> pa.Table:
        """Return the results of some windows.

        Parameters
        ----------
        keys : list of pyarrow.Array
            One per key column, with a value per window.
        bounds : [starts, ends]
            int64[n], or None for windows without bounds.
        columns : list of pyarrow.Array
            Of every aggregate.
        firing : (cause, number, timing)
            For the trace and the firing columns; by default a window fires once, at its end.
        """
        cause, number, timing = firing
        windows, (start, end) = len(keys[0]), bounds
        fired = Fired(start, end, number, timing, cause, None if end is None else end - 1)
        return result_table(self._schema, [*keys], windows, fired, columns)
