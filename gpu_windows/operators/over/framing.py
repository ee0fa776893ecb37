"""Frames of rows as ranges, and the partials over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.aggregates.partials import ROWS, Lift, Partial
from gpu_windows.kernels.backend import Backend
from gpu_windows.kernels.contract.joins import Side
from gpu_windows.operators.columns.partials import PartialColumn, Rows, State
from gpu_windows.operators.device import Kernels, Map
from gpu_windows.operators.over.partial_columns import FramedOnce, framed_columns
from gpu_windows.planning.kinds.over import OverPlan
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.vocabulary.frames import Frame

Ints = NDArray[np.int64]

#: Partials over the frames of some rows, one entry per row.
States = Mapping[tuple[Frame, Partial], State]
#: Number of rows whose frames a thread searches at once.
_ROWS_A_PART = 1 << 18


@dataclass(frozen=True)
class FramedRows:
    """Rows of keys, equal ones in order of time in their order of arrival.

    Parameters
    ----------
    codes, ts : int64[n]
        Key codes and times.
    states : mapping of Partial to State
        Partials of each row; without `ROWS` each entry is one row.
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
        The partials that frames need of each row.
    arguments : tuple of str
        The columns that these read.
    """

    def __init__(self, plan: OverPlan, kernels: Kernels, frames: Sequence[Frame]) -> None:
        self._kernels = kernels
        self.arguments = plan.query.over.arguments_of(frames)
        self._frames = {frame: plan.query.over.partials(frame) for frame in frames}
        partials = [*dict.fromkeys(p for each in self._frames.values() for p in each)]
        self.columns = dict(zip(partials, framed_columns(plan, partials), strict=True))

    def lift(self, rows: pa.Table, *, as_one: bool = True) -> dict[Partial, State]:
        """Return the partials of each row; ``as_one``: without `ROWS`, because each is one row."""
        lifted = Rows(rows)
        return {
            partial: column.materialise(column.lift(lifted), len(rows))
            for partial, column in self.columns.items()
            if not (as_one and partial == ROWS)
        }

    def combine(
        self, rows: FramedRows, selected: Ints | None = None
    ) -> dict[tuple[Frame, Partial], State]:
        """Return the partials over the frames of rows.

        Parameters
        ----------
        rows : FramedRows
        selected : int64[m], optional
            Indices of the rows to compute; default: all.

        Returns
        -------
        dict of (Frame, Partial) to State
            Partials of the selected rows, in their order.
        """
        return self._kernels.run(
            len(rows),
            lambda backend, each: _Work(self, backend, each, rows).states(self._frames, selected),
        )

    def totals(self, rows: FramedRows) -> tuple[Ints, dict[Partial, State]]:
        """Return the keys of rows, each once, and the partials over all rows of each."""
        return self._kernels.run(
            len(rows), lambda backend, each: _Work(self, backend, each, rows).totals()
        )


class _Work:
    """A call on a back end: rows sorted by key and time."""

    def __init__(self, framing: Framing, backend: Backend, each: Map, rows: FramedRows) -> None:
        self._backend, self._each = backend, each
        self._columns = framing.columns
        codes, ts, self._states = rows.codes, rows.ts, rows.states
        found = backend.joins.sort(backend.to_device(codes), backend.to_device(ts))
        self._order: NDArray[np.int32] | None = None
        if not found.were_sorted:
            self._order, codes, ts = map(backend.to_host, (found.numbers, found.codes, found.ts))
            self._states = {
                partial: self._columns[partial].take(state, self._order)
                for partial, state in self._states.items()
            }
        self._codes, self._ts = codes, ts
        times = {p: self._times(s) for p, s in self._states.items() if p.lift is Lift.NEW}
        self._states = {**self._states, **times}

    def _times(self, state: State) -> State:
        """Return the counts of distinct times: only the first row of each key and time counts."""
        (counts,) = state
        same = (np.diff(self._codes) == 0) & (np.diff(self._ts) == 0)
        return (np.where(np.concatenate([[False], same])[: len(counts)], 0, counts),)

    def states(
        self, frames: Mapping[Frame, Sequence[Partial]], selected: Ints | None
    ) -> dict[tuple[Frame, Partial], State]:
        index, back = self._indices(selected)
        found = {}
        for frame, partials in frames.items():
            ranges = self._ranges(frame, index, back)
            there = [partial for partial in partials if partial in self._states]
            pairs = [(self._columns[each], self._states[each]) for each in there]
            states = self._each(ranges.over, pairs)
            found.update({(frame, p): s for p, s in zip(there, states, strict=True)})
            if len(there) < len(partials):
                found[frame, ROWS] = ranges.lengths()
        return found

    def totals(self) -> tuple[Ints, dict[Partial, State]]:
        begins = np.flatnonzero(np.diff(self._codes, prepend=self._codes[:1] - 1))
        groups = self._backend.grouping.runs(np.diff(begins, append=len(self._codes)))
        pairs = [(self._columns[partial], state) for partial, state in self._states.items()]
        reduced = self._each(lambda pair: pair[0].reduce(self._backend, groups, pair[1]), pairs)
        return self._codes[begins], dict(zip(self._states, reduced, strict=True))

    def _indices(self, selected: Ints | None) -> tuple[Ints | None, Ints | None]:
        """Return the sorted indices of the selected rows, and their positions among these.

        None: all rows are selected; the rows are in order.
        """
        if self._order is None:
            return selected, None
        place = np.empty(len(self._order), np.int64)
        place[self._order] = np.arange(len(place))
        if selected is None:
            return None, place
        is_selected = np.zeros(len(place), np.bool_)
        is_selected[place[selected]] = True
        return np.flatnonzero(is_selected), (np.cumsum(is_selected) - 1)[place[selected]]

    def _ranges(self, frame: Frame, index: Ints | None, back: Ints | None) -> _Ranges:
        """Return the frames of some sorted rows as ranges."""
        backend = self._backend
        values = self._ts if frame.in_time else _number_rows(self._codes)
        every = Side(backend.to_device(self._codes), backend.to_device(values))
        some, own = every, values
        if frame.counts_from_last_peer:
            own = _number_last_peers(self._codes, self._ts, values)
        if index is not None or own is not values:
            here = slice(None) if index is None else index
            some = Side(backend.to_device(self._codes[here]), backend.to_device(own[here]))
        first, after = bounds = self._bounds(frame, some, every, index)
        empty = None
        if not frame.has_own_row:  # it may be empty
            here = np.arange(len(values)) if index is None else index
            first, after = backend.to_host(first), backend.to_host(after)
            empty = first >= after
            first = backend.to_device(np.where(empty, here, first))
            after = backend.to_device(np.where(empty, here + 1, after))
        found = backend.combine.ranges(*every, first, after - 1, frame.length)
        return _Ranges(backend, found, bounds, empty, back)

    def _bounds(self, frame: Frame, some: Side, every: Side, index: Ints | None) -> tuple[Any, Any]:
        """Return the first row of the frame of each of some rows, and the one after its last.

        An unbounded side ends with the key, because a distance of int64 may not reach that far.
        """
        lower, upper = frame.lower, frame.upper
        if lower > LONG_MIN and upper < LONG_MAX:
            return self._within(lower, upper, some, every)
        begins, ends = (
            self._backend.to_device(each if index is None else each[index])
            for each in _ends_of_keys(self._codes)
        )
        if frame.is_unbounded:
            return begins, ends
        if lower == LONG_MIN:
            return begins, self._within(upper, upper, some, every)[1]
        return self._within(lower, lower, some, every)[0], ends

    def _within(self, lower: int, upper: int, some: Side, every: Side) -> tuple[Any, Any]:
        """Return the first row within bounds of each of some rows, and the one after the last."""
        joins, rows = self._backend.joins, len(some.ts)

        def part(begin: int) -> tuple[Any, Any]:
            here = slice(begin, begin + _ROWS_A_PART)
            left = Side(some.codes[here], some.ts[here])
            return joins.range_bounds(left, every, lower, upper)

        if self._backend.name != "cpu" or rows <= _ROWS_A_PART:
            return joins.range_bounds(some, every, lower, upper)
        parts = [*self._each(part, range(0, rows, _ROWS_A_PART))]
        first, after = (np.concatenate(each) for each in zip(*parts, strict=True))
        return first, after


@dataclass(frozen=True)
class _Ranges:
    """The frames of rows as ranges of entries.

    Parameters
    ----------
    backend : Backend
    found : Ranges of the back end
    bounds : (int64[n], int64[n]) of the back end
        The first row of each frame, and the one after its last; both are ascending.
    empty : bool[n], optional
        Which frames are empty.
    back : int64[m], optional
        Indices of the frames to return; default: all, in order.
    """

    backend: Backend
    found: Any
    bounds: tuple[Any, Any]
    empty: NDArray[np.bool_] | None
    back: Ints | None

    def lengths(self) -> State:
        """Return the number of entries of each range."""
        counts = self.backend.to_host(self.found.last - self.found.first + 1)
        if self.empty is not None:
            counts = np.where(self.empty, 0, counts)
        return (counts if self.back is None else counts[self.back],)

    def over(self, pair: tuple[PartialColumn, State]) -> State:
        """Return a partial over the entries of each range; an empty one for empty ranges."""
        column, state = pair
        if isinstance(column, FramedOnce):
            first, after = map(self.backend.to_host, self.bounds)
            combined = column.within(first, after, state)
            return combined if self.back is None else column.take(combined, self.back)
        combined = column.combine(self.backend, self.found, state)
        if self.empty is not None and self.empty.any():
            combined = column.keep(combined, ~self.empty)
        return combined if self.back is None else column.take(combined, self.back)


def _number_rows(codes: Ints) -> Ints:
    """Number the rows of each key, which are adjacent: int64[n]."""
    return np.arange(len(codes)) - _ends_of_keys(codes)[0]


def _number_last_peers(codes: Ints, ts: Ints, numbers: Ints) -> Ints:
    """Return, for each row, the number of the last row of its key and time: int64[n]."""
    is_last = np.append((np.diff(codes) != 0) | (np.diff(ts) != 0), True)[: len(codes)]
    last = np.flatnonzero(is_last)
    return np.repeat(numbers[last], np.diff(last, prepend=-1))


def _ends_of_keys(codes: Ints) -> tuple[Ints, Ints]:
    """Return where the rows of each row's key begin, and where they end: int64[n] each."""
    begins = np.flatnonzero(np.diff(codes, prepend=codes[:1] - 1))
    ends = np.append(begins, len(codes))[1:]
    lengths = ends - begins
    return np.repeat(begins, lengths), np.repeat(ends, lengths)
