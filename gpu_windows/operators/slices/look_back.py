"""Aggregates of windows of several lengths that end together, from the same slices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from gpu_windows.aggregates.definitions import BoundAggregate
from gpu_windows.aggregates.partials import Partial
from gpu_windows.kernels.backend import Backend
from gpu_windows.operators.columns.lowering import lower
from gpu_windows.operators.columns.partials import PartialColumn, State
from gpu_windows.operators.device import Map
from gpu_windows.operators.slices.table import grid_of
from gpu_windows.planning.plan import WindowPlan


@dataclass(frozen=True)
class Placed:
    """Entries in the back end's memory.

    Parameters
    ----------
    codes, slices : int64[m]
        Sorted by (code, slice), each pair once.
    states : sequence of State
        One a partial.
    """

    codes: Any
    slices: Any
    states: Sequence[State]


@dataclass(frozen=True)
class Lengths:
    """The result columns of windows, each over the part of them that its aggregate is of.

    Parameters
    ----------
    plan : WindowPlan
        Of the slices strategy.
    columns : sequence of PartialColumn
        The partials of the entries.
    each : Map
        Makes several partials at once.
    """

    plan: WindowPlan
    columns: Sequence[PartialColumn]
    each: Map

    def results(self, backend: Backend, entries: Placed, found: Any) -> list[pa.Array]:
        """Return a column for each aggregate, a value a window of ``found``."""
        made: dict[str, pa.Array] = {}
        for length, bound in self._by_length.items():
            made.update(self._of_length(backend, entries, found, length, bound))
        return [made[bound.name] for bound in self.plan.query.function.built_in]

    @cached_property
    def _by_length(self) -> Mapping[int, Sequence[BoundAggregate]]:
        """The aggregates by the slices that they are of."""
        grid = grid_of(self.plan)
        found: dict[int, list[BoundAggregate]] = {}
        for bound in self.plan.query.function.built_in:
            recent = bound.aggregate.recent
            length = grid.span if recent is None else recent // grid.slide
            found.setdefault(length, []).append(bound)
        return found

    def _of_length(
        self,
        backend: Backend,
        entries: Placed,
        found: Any,
        length: int,
        bound: Sequence[BoundAggregate],
    ) -> Iterator[tuple[str, pa.Array]]:
        """Yield name and column of the aggregates over the last slices of windows."""
        if length == found.grid.span:
            states = self._combined(backend, found, entries, bound)
            yield from zip(_names(bound), self._lowered(bound, states), strict=True)
            return
        first, some = backend.combine.last_slices(entries.codes, entries.slices, found, length)
        last, present = found.last, backend.to_host(some)
        if not present.all():
            there = backend.to_device(np.flatnonzero(present))
            first, last = backend.take(first, there), backend.take(last, there)
        ranges = backend.combine.ranges(entries.codes, entries.slices, first, last, length)
        states = self._combined(backend, ranges, entries, bound)
        for aggregate, column in zip(bound, self._lowered(bound, states), strict=True):
            yield aggregate.name, _spread(column, present, aggregate)

    def _combined(
        self, backend: Backend, found: Any, entries: Placed, bound: Sequence[BoundAggregate]
    ) -> dict[Partial, State]:
        """Return the partials that some aggregates need, of every range."""
        needed = {partial for aggregate in bound for partial in aggregate.partials}
        pairs = zip(self.columns, entries.states, strict=True)
        chosen = [pair for pair in pairs if pair[0].partial in needed]

        def combine(pair: tuple[PartialColumn, State]) -> State:
            column, state = pair
            return column.combine(backend, found, state)

        combined = self.each(combine, chosen)
        return dict(zip((column.partial for column, _ in chosen), combined, strict=True))

    def _lowered(
        self, bound: Sequence[BoundAggregate], states: Mapping[Partial, State]
    ) -> list[pa.Array]:
        return [*self.each(lambda aggregate: lower(aggregate, states), bound)]


def _names(bound: Sequence[BoundAggregate]) -> list[str]:
    return [aggregate.name for aggregate in bound]


def _spread(column: pa.Array, present: Any, bound: BoundAggregate) -> pa.Array:
    """Return results for all windows, given those of the windows that have a row in the part."""
    if present.all():
        return column
    places = pa.array(np.cumsum(present) - 1, mask=~present)
    spread = column.take(places)
    return spread if bound.of_nothing is None else spread.fill_null(bound.of_nothing)
