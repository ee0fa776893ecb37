"""Calls of the join kernels; each call selects its back end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gpu_windows.kernels.backend import Backend
from gpu_windows.kernels.contract.joins import Side, SortedRows
from gpu_windows.operators.device import Kernels, Map
from gpu_windows.operators.joins import pairs as join_pairs
from gpu_windows.operators.joins.rows import Flags, JoinRows

Ints = NDArray[np.int64]
T = TypeVar("T")

#: Number of rows in a task of a thread of the CPU.
_ROWS_A_PART = 1 << 17
#: About how many bytes of pairs are produced at once.
_PAIR_BYTES = 1 << 28


class Matching:
    """Finds which rows of two sides match.

    Parameters
    ----------
    kernels : Kernels
    lower, upper : int
        ``left_ts + lower <= right_ts <= left_ts + upper``, in ticks.

    Notes
    -----
    What kernels made stays on a device between two calls, and is copied to the host if one of them
    runs on the CPU: so if a device is full, that one call does.
    """

    def __init__(self, kernels: Kernels, lower: int, upper: int) -> None:
        self.kernels = kernels
        self._lower, self._upper = lower, upper

    def sort_rows(self, codes: Ints, ts: Ints) -> SortedRows:
        """Return rows sorted by code and time, which a device may have."""

        def sort(backend: Backend, _: Map) -> SortedRows:
            return _move(backend.joins.sort(*_on_device(backend, codes, ts)), backend.keep)

        return self.kernels.run(len(codes), sort)

    def find_pairs(self, left: JoinRows, right: JoinRows) -> Iterator[tuple[Ints, Ints]]:
        """Yield pairs of matching rows, as left and right row numbers, in chunks.

        Left rows come in order of code and time, the matches of each in order of time.
        """

        def count(backend: Backend, each: Map) -> tuple[int, Ints, Ints]:
            first, last = self._ranges(backend, each, left, right)
            offsets, pairs = backend.joins.pair_offsets(first, last)
            return pairs, backend.keep(first), backend.keep(offsets)

        pairs, *ranges = self._run(count, left, right)
        max_pairs = _max_pairs(left, right)
        for begin in range(0, pairs, max_pairs):
            yield self._expand_pairs(left, right, ranges, begin, min(begin + max_pairs, pairs))

    def _expand_pairs(
        self, left: JoinRows, right: JoinRows, ranges: Sequence[Ints], begin: int, end: int
    ) -> tuple[Ints, Ints]:
        """Return the pairs from ``begin`` to ``end``."""

        def expand(backend: Backend, _: Map) -> tuple[Ints, Ints]:
            lefts, rights = (backend.to_device(rows.sorted_rows.numbers) for rows in (left, right))
            first, offsets = map(backend.to_device, ranges)
            i, j = backend.joins.expand_pairs(lefts, rights, first, offsets, begin, end)
            return backend.to_host(i), backend.to_host(j)

        i, j = self._run(expand, left, right)
        return i.astype(np.int64), j.astype(np.int64)  # with which NumPy is twice as fast

    def find_matched(self, left: JoinRows, right: JoinRows) -> Flags:
        """Return which left rows match any right row, without producing pairs."""
        return self._flag_rows(left, left, right, lambda joins: joins.has_match)

    def find_covered(self, left: JoinRows, right: JoinRows) -> Flags:
        """Return which right rows match any left row, without producing pairs."""
        return self._flag_rows(right, left, right, lambda joins: joins.mark_covered)

    def _flag_rows(
        self, rows: JoinRows, left: JoinRows, right: JoinRows, kernel_of: Callable[[Any], Any]
    ) -> Flags:
        """Return which rows of a side match, by a kernel."""

        def flag(backend: Backend, each: Map) -> Flags:
            ranges = self._ranges(backend, each, left, right)
            numbers = backend.to_device(rows.sorted_rows.numbers)
            found: Flags = backend.to_host(kernel_of(backend.joins)(numbers, *ranges))
            return found

        return self._run(flag, left, right)

    def find_nearest(self, left: JoinRows, right: JoinRows, direction: int) -> Ints:
        """Return the number of the nearest right row of every left row, or -1."""

        def nearest(backend: Backend, _: Map) -> Ints:
            lefts, rights = (_move(rows.sorted_rows, backend.to_device) for rows in (left, right))
            found = backend.joins.nearest(lefts, rights, self._lower, self._upper, direction)
            return backend.to_host(found)

        return self._run(nearest, left, right)

    def _run(self, work: Callable[[Backend, Map], T], left: JoinRows, right: JoinRows) -> T:
        """Call ``work``, whose input is sorted first."""
        for rows in (left, right):
            _ = rows.sorted_rows
        return self.kernels.run(len(left) + len(right), work)

    def _ranges(
        self, backend: Backend, each: Map, left: JoinRows, right: JoinRows
    ) -> tuple[Any, Any]:
        """Return the range of right rows that match each left row, on the back end.

        Threads of the CPU take parts of the left rows; a device takes all at once.
        """
        lefts, rights = (_on_device(backend, *rows.sorted_rows.side) for rows in (left, right))
        bounds = rights, self._lower, self._upper
        if backend.name != "cpu" or len(left) <= _ROWS_A_PART:
            return backend.joins.range_bounds(lefts, *bounds)

        def part(begin: int) -> tuple[Ints, Ints]:
            here = slice(begin, begin + _ROWS_A_PART)
            return backend.joins.range_bounds(Side(lefts.codes[here], lefts.ts[here]), *bounds)

        parts = [*each(part, range(0, len(left), _ROWS_A_PART))]
        first, last = (np.concatenate(bound) for bound in zip(*parts, strict=True))
        return first, last


def _on_device(backend: Backend, codes: Ints, ts: Ints) -> Side:
    return Side(backend.to_device(codes), backend.to_device(ts))


def _move(rows: SortedRows, move: Callable[[Any], Any]) -> SortedRows:
    return SortedRows(move(rows.numbers), move(rows.codes), move(rows.ts), rows.were_sorted)


def _max_pairs(left: JoinRows, right: JoinRows) -> int:
    bytes_a_pair: int = sum(max(rows.table.nbytes // len(rows), 1) for rows in (left, right))
    return max(1, min(join_pairs.PAIRS, _PAIR_BYTES // bytes_a_pair))
