"""Reduce the groups of rows or entries to one state a column."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.aggregates.partials import Lift
from gpu_windows.kernels.backend import Backend
from gpu_windows.operators.columns.partials import PartialColumn, Rows, State

Ints = NDArray[np.int64]


def reduce_columns(
    backend: Backend,
    groups: Any,
    columns: Sequence[PartialColumn],
    states: Sequence[State],
    each: Callable[..., Iterable[Any]] = map,
) -> tuple[State, ...]:
    """Combine the entries of every group, in their order: a state a column.

    The two halves of an exact sum are made in one pass over lifted rows.

    Parameters
    ----------
    backend : Backend
    groups : Groups
        Of the back end.
    columns : sequence of PartialColumn
    states : sequence of State
        Of every column, lifted or not.
    each : callable
        The built-in ``map``, or one that works at several columns at once.
    """

    def reduce(places: tuple[int, ...]) -> tuple[State, ...]:
        if len(places) == 1:
            (place,) = places
            return (columns[place].reduce(backend, groups, states[place]),)
        values, valid = map(backend.to_device, states[places[0]])
        halves = backend.reduce.exact_sum(groups, values, valid)
        return tuple((backend.keep(half),) for half in halves)

    found: list[State] = [()] * len(columns)
    passes = list(_passes(columns, states))
    for places, reduced in zip(passes, each(reduce, passes), strict=True):
        for place, state in zip(places, reduced, strict=True):
            found[place] = state
    return tuple(found)


def _passes(columns: Sequence[PartialColumn], states: Sequence[State]) -> Iterator[tuple[int, ...]]:
    """Yield the columns that are reduced together, by their places."""
    lows = {
        replace(column.partial, lift=Lift.HIGH): place
        for place, column in enumerate(columns)
        if column.partial.lift is Lift.LOW and len(states[place]) == 2
    }
    pairs = [
        (place, lows[column.partial])
        for place, column in enumerate(columns)
        if column.partial in lows and len(states[place]) == 2
    ]
    paired = {place for pair in pairs for place in pair}
    yield from pairs
    yield from ((place,) for place in range(len(columns)) if place not in paired)


def reduce_lists(
    backend: Backend, columns: Sequence[PartialColumn], rows: pa.Table, lengths: Ints
) -> tuple[State, ...]:
    """Reduce lists of rows, of which the first has ``lengths[0]`` and so on, to partials."""
    lifted = Rows(rows)
    return reduce_states(backend, columns, [column.lift(lifted) for column in columns], lengths)


def reduce_states(
    backend: Backend, columns: Sequence[PartialColumn], entries: Sequence[State], lengths: Ints
) -> tuple[State, ...]:
    """Combine lists of entries, of which the first has ``lengths[0]`` and so on."""
    some = lengths > 0
    groups = backend.grouping.runs(lengths[some])
    states = [column.nothing() for column in columns]
    if some.any():
        reduced = reduce_columns(backend, groups, columns, entries)
        states = [
            column.concat([state, nothing])
            for column, state, nothing in zip(columns, reduced, states, strict=True)
        ]
    return tuple(map(partial(_spread, some), columns, states))


def _spread(some: NDArray[np.bool_], column: PartialColumn, state: State) -> State:
    """Return a state for all lists from that of the lists with rows, and of nothing."""
    places = np.where(some, np.cumsum(some) - 1, int(np.count_nonzero(some)))
    return column.take(state, places)
