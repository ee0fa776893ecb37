"""The slice strategies: rows into a table of partials, and partials of windows into results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from gpu_windows.aggregates.definitions import BoundAggregate
from gpu_windows.aggregates.partials import Partial
from gpu_windows.kernels.backend import Backend
from gpu_windows.operators.base import Emission, MergesPartials, Operator
from gpu_windows.operators.columns.lowering import lower
from gpu_windows.operators.columns.partials import PartialColumn, State, on_host
from gpu_windows.operators.device import Kernels, Map
from gpu_windows.operators.results import TRACE, Fired, result_table
from gpu_windows.operators.slices.table import Entries, SliceTable, grid_of
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
        calls = self._kernels.take_counters()
        yield Emission.without_results(self._schema, batch, rejected, calls)

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


@dataclass(frozen=True)
class Lengths:
    """The result columns of windows, each over the last slices that its aggregate covers.

    Parameters
    ----------
    plan : WindowPlan
        Of the slices strategy.
    columns : sequence of PartialColumn
        The partials of the entries.
    each : Map
        Maps over partials, maybe in several threads.
    """

    plan: WindowPlan
    columns: Sequence[PartialColumn]
    each: Map

    def results(self, backend: Backend, entries: Entries, found: Any) -> list[pa.Array]:
        """Return a column per aggregate, with a value per window of ``found``.

        ``entries``: merged ones, in the back end's memory.
        """

        def of_length(length: int) -> dict[str, pa.Array]:
            return self._of_length(backend, entries, prepared, found, length)

        several = len(self._by_length) > 1
        prepared = self._prepare(backend, entries)
        parts = (
            self.each(of_length, self._by_length) if several else map(of_length, self._by_length)
        )
        made = {name: column for part in parts for name, column in part.items()}
        return [made[bound.name] for bound in self.plan.query.function.built_in]

    @cached_property
    def _by_length(self) -> Mapping[int, Sequence[BoundAggregate]]:
        """The aggregates by the number of last slices that they cover."""
        grid = grid_of(self.plan)
        found: dict[int, list[BoundAggregate]] = {}
        for bound in self.plan.query.function.built_in:
            recent = bound.aggregate.recent
            length = grid.span if recent is None else recent // grid.slide
            found.setdefault(length, []).append(bound)
        return found

    def _prepare(self, backend: Backend, entries: Entries) -> Mapping[Partial, Any]:
        """Return the states of entries prepared for combination: the same for all lengths."""
        pairs = zip(self.columns, entries.states, strict=True)
        made = self.each(lambda pair: pair[0].prepare(backend, pair[1]), pairs)
        return {c.partial: state for c, state in zip(self.columns, made, strict=True)}

    def _of_length(
        self,
        backend: Backend,
        entries: Entries,
        prepared: Mapping[Partial, Any],
        found: Any,
        length: int,
    ) -> dict[str, pa.Array]:
        """Return the columns of the aggregates over the last slices of windows, by their names."""
        bound = self._by_length[length]
        ranges, some = found, None
        if length != found.grid.span:
            codes, slices = entries.codes, entries.slices
            first, present = backend.combine.last_slices(codes, slices, found, length)
            ranges = backend.combine.ranges(codes, slices, first, found.last, length)
            some = backend.to_host(present)
        needed = {partial for aggregate in bound for partial in aggregate.partials}

        def combine(column: PartialColumn) -> State:
            combined = column.combine_prepared(backend, ranges, prepared[column.partial])
            return combined if some is None or some.all() else column.keep(combined, some)

        columns = [column for column in self.columns if column.partial in needed]
        # several lengths are several pieces of work already
        each = map if len(self._by_length) > 1 else self.each
        combined = map(on_host, list(each(combine, columns)))  # all are asked for before the first
        states = dict(zip((column.partial for column in columns), combined, strict=True))
        results = each(lambda aggregate: lower(aggregate, states), bound)
        return dict(zip((aggregate.name for aggregate in bound), results, strict=True))
