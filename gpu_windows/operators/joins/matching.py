"""Calls of the join kernels; each call selects its back end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.kernels.backend import Backend
from gpu_windows.kernels.contract.joins import Side
from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.device import Kernels, Map
from gpu_windows.operators.joins import pairs as join_pairs
from gpu_windows.operators.joins.rows import Flags, JoinRows
from gpu_windows.operators.key_encoding import encode_keys

Ints = NDArray[np.int64]

#: Number of rows in a task of a thread.
_ROWS_A_PART = 1 << 17
#: The offsets of no pair.
_NONE: Ints = np.zeros(1, np.int64)
#: About how many bytes of pairs are produced at once.
_PAIR_BYTES = 1 << 28


class Matching:
    """Finds which rows of two sides match; all rows are sorted by key and time.

    Parameters
    ----------
    kernels : Kernels
    lower, upper : int
        ``left_ts + lower <= right_ts <= left_ts + upper``, in ticks.

    Notes
    -----
    Between two calls all data is on the host, so if a device is full, one call runs on the CPU.
    """

    def __init__(self, kernels: Kernels, lower: int, upper: int) -> None:
        self._kernels = kernels
        self._lower, self._upper = lower, upper

    def encode(self, keys: KeyEncoder, columns: Sequence[pa.Array | pa.ChunkedArray]) -> Ints:
        """Return the codes of keys: int64[n], in [0, ``keys.count``)."""
        return np.asarray(encode_keys(self._kernels, keys, columns))

    def sort_order(self, codes: Ints, ts: Ints) -> Ints | None:
        """Return the order of rows by key and time; None if they are sorted."""

        def order(backend: Backend, each: Map) -> Ints | None:
            del each
            found = backend.joins.sorted_by_time(backend.to_device(codes), backend.to_device(ts))
            return None if found is None else backend.to_host(found)

        return self._kernels.run(len(codes), order) if len(codes) else None

    def find_pairs(self, left: JoinRows, right: JoinRows) -> Iterator[tuple[Ints, Ints]]:
        """Yield pairs of matching rows, as left and right indices, in chunks."""

        def offsets(backend: Backend, each: Map) -> tuple[Ints, Ints]:
            first, last = self._ranges(backend, each, left, right)
            ends = backend.joins.pair_offsets(first, last)
            if not backend.to_host(ends[-1:])[0]:
                return _NONE, _NONE
            return backend.to_host(first), backend.to_host(ends)

        first, ends = self._kernels.run(len(left) + len(right), offsets)
        total, max_pairs = int(ends[-1]), _max_pairs(left, right)
        for begin in range(0, total, max_pairs):
            yield self._expand_pairs(first, ends, begin, min(begin + max_pairs, total))

    def _expand_pairs(self, first: Ints, ends: Ints, begin: int, end: int) -> tuple[Ints, Ints]:
        """Return the pairs with numbers from ``begin`` to ``end``."""
        low, high = np.searchsorted(ends, [begin, end - 1], "right") - 1
        firsts, until = first[low : high + 1], ends[low : high + 2]

        def expand(backend: Backend, each: Map) -> tuple[Ints, Ints]:
            del each
            on_device = backend.to_device(firsts), backend.to_device(until)
            i, j = backend.joins.expand_pairs(*on_device, begin, end)
            return backend.to_host(i), backend.to_host(j)

        i, j = self._kernels.run(end - begin, expand)
        i += low
        return i, j

    def find_matched(self, left: JoinRows, right: JoinRows) -> Flags:
        """Return which left rows match any right row, without producing pairs."""

        def match(backend: Backend, each: Map) -> Flags:
            ranges = self._ranges(backend, each, left, right)
            found: Flags = backend.to_host(backend.joins.has_match(*ranges))
            return found

        return self._kernels.run(len(left) + len(right), match)

    def find_covered(self, left: JoinRows, right: JoinRows) -> Flags:
        """Return which right rows match any left row, without producing pairs."""

        def cover(backend: Backend, each: Map) -> Flags:
            ranges = self._ranges(backend, each, left, right)
            found: Flags = backend.to_host(backend.joins.mark_covered(*ranges, len(right)))
            return found

        return self._kernels.run(len(left) + len(right), cover)

    def find_nearest(self, left: JoinRows, right: JoinRows, direction: int) -> Ints:
        """Return the index of the nearest right row of every left row, or -1."""

        def nearest(backend: Backend, each: Map) -> Ints:
            del each
            lefts = _on_device(backend, left.codes, left.ts)
            rights = _on_device(backend, right.codes, right.ts)
            found = backend.joins.nearest(lefts, rights, self._lower, self._upper, direction)
            return backend.to_host(found)

        return self._kernels.run(len(left) + len(right), nearest)

    def _ranges(
        self, backend: Backend, each: Map, left: JoinRows, right: JoinRows
    ) -> tuple[Any, Any]:
        """Return the range of right rows that match each left row, on the back end."""
        rights = _on_device(backend, right.codes, right.ts)

        def part(begin: int) -> Any:
            end = begin + _ROWS_A_PART
            lefts = _on_device(backend, left.codes[begin:end], left.ts[begin:end])
            return backend.joins.range_bounds(lefts, rights, self._lower, self._upper)

        parts = [*each(part, range(0, len(left), _ROWS_A_PART))]
        return _concat_parts(backend, [p[0] for p in parts]), _concat_parts(
            backend, [p[1] for p in parts]
        )


def _on_device(backend: Backend, codes: Ints, ts: Ints) -> Side:
    return Side(backend.to_device(codes), backend.to_device(ts))


def _max_pairs(left: JoinRows, right: JoinRows) -> int:
    bytes_a_pair: int = sum(max(rows.table.nbytes // len(rows), 1) for rows in (left, right))
    return max(1, min(join_pairs.PAIRS, _PAIR_BYTES // bytes_a_pair))


def _concat_parts(backend: Backend, parts: list[Any]) -> Any:
    """Concatenate the results of parts of the rows."""
    if len(parts) == 1:
        return parts[0]
    return backend.to_device(np.concatenate([backend.to_host(part) for part in parts]))
