"""What the columnar strategies share: rows into a table of partials, partials into results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from gpu_windows import rules
from gpu_windows.aggregates.definitions import Partial
from gpu_windows.operators.base import TRACE, Emission, Operator
from gpu_windows.operators.columns.lowering import lower
from gpu_windows.operators.columns.partials import State
from gpu_windows.operators.device import Kernels, Map
from gpu_windows.operators.slices.table import Rejected, SliceTable
from gpu_windows.planning.plan import WindowPlan
from gpu_windows.query.base import REASON
from gpu_windows.query.window import FIRING
from gpu_windows.rules import LONG_MIN

#: Why a row is given back, by its status (`gpu_windows.rules`); null where it is not.
_REASONS = pa.array(
    [
        {
            rules.LATE: "late",
            rules.NULL: "null_timestamp",
            rules.OUT_OF_RANGE: "out_of_range_timestamp",
        }.get(status)
        for status in range(rules.NULL + 1)
    ],
    pa.string(),
)


class FiringOperator(Operator):
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
        """Take rows; results wait for the watermark."""
        rejected = self._table.add_rows(batch, self._watermark)
        counters = rejected.counts() + self._kernels.counted()
        late = given_back(batch, rejected)
        yield Emission(self._schema.empty_table(), late, counters)

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
        bound = self._plan.query.function.built_in
        columns = each(lambda aggregate: lower(aggregate, states), bound)
        windows, (start, end) = len(keys[0]), bounds
        fired = Fired(start, end, number, pane, cause, None if end is None else end - 1)
        return result_table(self._schema, [*keys], windows, fired, [*columns])


@dataclass(frozen=True)
class Fired:
    """What every result says of its firing: an array each, or one value for all.

    Parameters
    ----------
    start, end : int64[n], optional
        None for windows without bounds.
    number : int64[n] or int
        Which firing of its window it is.
    pane : str[n] or str
    cause : str[n] or str
        What made it fire, and when by a timer (``time``).
    time : int64[n] or masked array, optional
    """

    start: Any
    end: Any
    number: Any
    pane: Any
    cause: Any
    time: Any


def result_table(
    schema: pa.Schema, keys: list[Any], windows: int, fired: Fired, columns: list[Any]
) -> pa.Table:
    """Return results of ``schema``: keys, bounds, columns, and of `FIRING` and `TRACE` what it has.

    Parameters
    ----------
    schema : pyarrow.Schema
    keys : list of pyarrow.Array
    windows : int
        Number of results.
    fired : Fired
    columns : list of pyarrow.Array
        What the window function gave.
    """

    def spread(value: Any, kind: pa.DataType) -> pa.Array:
        if value is None:
            return pa.nulls(windows, kind)
        if isinstance(value, pa.Array):
            return value
        return pa.array(np.broadcast_to(value, windows), kind)

    found = [*keys, spread(fired.start, pa.int64()), spread(fired.end, pa.int64()), *columns]
    extra = (
        (FIRING[0], fired.number),
        (FIRING[1], fired.pane),
        *zip(TRACE, (fired.cause, fired.time), strict=True),
    )
    found += [spread(value, field.type) for field, value in extra if field.name in schema.names]
    return pa.table(found, schema=schema)


def given_back(batch: pa.Table, rejected: Rejected) -> pa.Table:
    """Return the rows that are given back, and the reason; those in gaps are not."""
    reasons = _REASONS.take(pa.array(rejected.status)).drop_null()
    late = batch.slice(0, 0)
    if len(reasons):  # a filter keeps the batch's chunks, which together may be too large for one
        some = np.zeros(len(batch), np.bool_)
        some[rejected.places[rejected.status != rules.GAP]] = True
        late = batch.filter(pa.array(some))
    return late.append_column(REASON, reasons)
