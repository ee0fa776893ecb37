"""Reduce groups of rows or entries: one state per partial column."""

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
    """Combine the entries of every group, in their order; return a state per column.

    Both halves of an exact sum are computed in one pass over lifted rows.

    Parameters
    ----------
    backend : Backend
    groups : Groups
        Of the back end.
    columns : sequence of PartialColumn
    states : sequence of State
        Of every column, lifted or not.
    each : callable
        The built-in ``map``, or one that runs in several threads.
    """

    def reduce(indices: tuple[int, ...]) -> tuple[State, ...]:
        if len(indices) == 1:
            (index,) = indices
            return (columns[index].reduce(backend, groups, states[index]),)
        values, valid = map(backend.to_device, states[indices[0]])
        halves = backend.reduce.exact_sum(groups, values, valid)
        return tuple((backend.keep(half),) for half in halves)

    found: list[State] = [()] * len(columns)
    passes = list(_passes(columns, states))
    for indices, reduced in zip(passes, each(reduce, passes), strict=True):
        for index, state in zip(indices, reduced, strict=True):
            found[index] = state
    return tuple(found)


def _passes(columns: Sequence[PartialColumn], states: Sequence[State]) -> Iterator[tuple[int, ...]]:
    """Yield the indices of the columns that are reduced together."""
    lows = {
        replace(column.partial, lift=Lift.HIGH): index
        for index, column in enumerate(columns)
        if column.partial.lift is Lift.LOW and len(states[index]) == 2
    }
    pairs = [
        (index, lows[column.partial])
        for index, column in enumerate(columns)
        if column.partial in lows and len(states[index]) == 2
    ]
    paired = {index for pair in pairs for index in pair}
    yield from pairs
    yield from ((index,) for index in range(len(columns)) if index not in paired)


def reduce_lists(
    backend: Backend, columns: Sequence[PartialColumn], rows: pa.Table, lengths: Ints
) -> tuple[State, ...]:
    """Reduce consecutive lists of rows to partials; list i has ``lengths[i]`` rows."""
    lifted = Rows(rows)
    return reduce_states(backend, columns, [column.lift(lifted) for column in columns], lengths)


def reduce_states(
    backend: Backend, columns: Sequence[PartialColumn], entries: Sequence[State], lengths: Ints
) -> tuple[State, ...]:
    """Combine consecutive lists of entries; list i has ``lengths[i]`` entries."""
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
    """Return the state of all lists from that of the non-empty ones, followed by the identity."""
    indices = np.where(some, np.cumsum(some) - 1, int(np.count_nonzero(some)))
    return column.take(state, indices)
