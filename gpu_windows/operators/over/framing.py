"""Frames of rows found as ranges, and what the partials of their rows combine to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.aggregates.definitions import Partial
from gpu_windows.frames import Frame
from gpu_windows.kernels.backend import Backend
from gpu_windows.kernels.contract.joins import Side
from gpu_windows.operators.columns.partials import PartialColumn, Rows, State
from gpu_windows.operators.device import Kernels, Map
from gpu_windows.operators.over.partial_columns import framed_columns
from gpu_windows.planning.plan import OverPlan

Ints = NDArray[np.int64]

#: What partials over frames are of some rows, an entry a row.
States = Mapping[tuple[Frame, Partial], State]
#: Rows that a thread looks for the frames of at once.
_ROWS_A_PART = 1 << 18


@dataclass(frozen=True)
class FramedRows:
    """Rows of keys, equal ones in order of time in their order of arrival.

    Parameters
    ----------
    codes, ts : int64[n]
        Of keys; times.
    states : mapping of Partial to State
        What each row is.
    """

    codes: Ints
    ts: Ints
    states: Mapping[Partial, State]

    def __len__(self) -> int:
        return len(self.ts)


class Framing:
    """Combines partials over some frames.

    Parameters
    ----------
    plan : OverPlan
    kernels : Kernels
    frames : sequence of Frame

    Attributes
    ----------
    columns : mapping of Partial to PartialColumn
        What is needed of each row.
    """

    def __init__(self, plan: OverPlan, kernels: Kernels, frames: Sequence[Frame]) -> None:
        self._kernels = kernels
        self._frames = {frame: plan.over.partials(frame) for frame in frames}
        partials = [*dict.fromkeys(p for each in self._frames.values() for p in each)]
        self.columns = dict(zip(partials, framed_columns(plan, partials), strict=True))

    def lift(self, rows: pa.Table) -> dict[Partial, State]:
        """Return what each of some rows is."""
        lifted = Rows(rows)
        return {
            partial: column.materialise(column.lift(lifted), len(rows))
            for partial, column in self.columns.items()
        }

    def combined(self, rows: FramedRows, wanted: Ints | None = None) -> dict[Any, State]:
        """Return the partials over the frames of rows.

        Parameters
        ----------
        rows : FramedRows
        wanted : int64[m], optional
            Places of the rows that are asked for; default: all.

        Returns
        -------
        dict of (Frame, Partial) to State
            Of the wanted rows, in their order.
        """

        def work(backend: Backend, each: Map) -> dict[Any, State]:
            return _Work(self, backend, each, rows).states(self._frames, wanted)

        return self._kernels.run(len(rows), work)


class _Work:
    """A call on a back end: rows sorted by key and time."""

    def __init__(self, framing: Framing, backend: Backend, each: Map, rows: FramedRows) -> None:
        self._backend, self._each = backend, each
        self._columns = framing.columns
        codes, ts, self._states = rows.codes, rows.ts, rows.states
        found = backend.joins.sorted_by_time(backend.to_device(codes), backend.to_device(ts))
        self._order: Ints | None = None if found is None else backend.to_host(found)
        if self._order is not None:
            codes, ts = codes[self._order], ts[self._order]
            self._states = {
                partial: self._columns[partial].take(state, self._order)
                for partial, state in self._states.items()
            }
        self._codes, self._ts = codes, ts

    def states(self, frames: Mapping[Frame, Sequence[Partial]], wanted: Ints | None) -> Any:
        places = self._places(wanted)
        found = {}
        for frame, partials in frames.items():
            ranges, empty = self._ranges(frame, places)
            columns = [self._columns[partial] for partial in partials]
            pairs = zip(columns, (self._states[partial] for partial in partials), strict=True)
            states = self._each(
                lambda pair, r=ranges, e=empty: self._over(pair[0], pair[1], r, e), pairs
            )
            found.update({(frame, p): s for p, s in zip(partials, states, strict=True)})
        return found

    def _places(self, wanted: Ints | None) -> Ints | None:
        """Return where the wanted rows are among the sorted ones; None: they are these."""
        if self._order is None:
            return wanted
        place = np.empty(len(self._order), np.int64)
        place[self._order] = np.arange(len(place))
        return place if wanted is None else place[wanted]

    def _ranges(self, frame: Frame, places: Ints | None) -> tuple[Any, NDArray[np.bool_] | None]:
        """Return the frames of the wanted rows as ranges, and which of them are empty."""
        backend = self._backend
        values = self._ts if frame.in_time else _numbered(self._codes)
        codes, on_device = backend.to_device(self._codes), backend.to_device(values)
        first, after = self._bounds(frame, self._codes, values)
        empty = None
        if not frame.has_own_row:
            here = np.arange(len(values))
            first, after = backend.to_host(first), backend.to_host(after)
            is_empty = first >= after
            first = backend.to_device(np.where(is_empty, here, first))
            after = backend.to_device(np.where(is_empty, here + 1, after))
            empty = is_empty if places is None else is_empty[places]
        found = backend.combine.ranges(codes, on_device, first, after - 1, frame.length)
        if places is not None:
            found = found.take(backend.to_device(places))
        return found, empty

    def _bounds(self, frame: Frame, codes: Ints, values: Ints) -> tuple[Any, Any]:
        """Return the first row of the frame of every row, and the one after its last."""
        backend = self._backend
        right = Side(backend.to_device(codes), backend.to_device(values))

        def part(begin: int) -> tuple[Any, Any]:
            some = slice(begin, begin + _ROWS_A_PART)
            left = Side(right.codes[some], right.ts[some])
            return backend.joins.range_bounds(left, right, frame.lower, frame.upper)

        if backend.name != "cpu" or len(values) <= _ROWS_A_PART:
            return backend.joins.range_bounds(right, right, frame.lower, frame.upper)
        parts = [*self._each(part, range(0, len(values), _ROWS_A_PART))]
        first, after = (np.concatenate(each) for each in zip(*parts, strict=True))
        return first, after

    def _over(
        self, column: PartialColumn, state: State, ranges: Any, empty: NDArray[np.bool_] | None
    ) -> State:
        """Return a partial over ranges; nothing over those that are empty."""
        found = column.combine(self._backend, ranges, state)
        if empty is None or not empty.any():
            return found
        places = np.where(empty, len(empty), np.arange(len(empty)))
        return column.take(column.concat([found, column.nothing()]), places)


def _numbered(codes: Ints) -> Ints:
    """Return the numbers of rows among those of their key, which stand together: int64[n]."""
    places = np.arange(len(codes))
    begins = np.flatnonzero(np.diff(codes, prepend=codes[:1] - 1))
    lengths = np.diff(begins, append=len(codes))
    return places - np.repeat(begins, lengths)
