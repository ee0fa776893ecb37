"""Aggregates of windows of several lengths that end together, from the same slices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from gpu_windows.aggregates.definitions import BoundAggregate
from gpu_windows.aggregates.partials import Partial
from gpu_windows.kernels.backend import Backend
from gpu_windows.operators.columns.lowering import lower
from gpu_windows.operators.columns.partials import PartialColumn, State, on_host
from gpu_windows.operators.device import Map
from gpu_windows.operators.slices.table import Entries, grid_of
from gpu_windows.planning.kinds.window_plan import WindowPlan


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
