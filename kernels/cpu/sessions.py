"""Group spans of time of the same key that intersect or touch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_windows.kernels.compile import kernel
from gpu_windows.kernels.cpu.grouping import Groups
from gpu_windows.kernels.cpu.runs import order_runs
from gpu_windows.kernels.cpu.types import INTS, OUT_INTS, OUT_INTS32

#: Key codes a row up to which counting them is cheaper than comparing rows.
_CODES_PER_ROW = 4


def group(
    codes: NDArray[np.int64], starts: NDArray[np.int64], ends: NDArray[np.int64], key_count: int
) -> Groups:
    """See `contract.groups.Sessions.group`."""
    count = len(codes)
    cells = np.empty(count, np.int32)
    heads = np.empty(count, np.int64)
    rows = np.zeros(count, np.int64)
    order = _order(codes, starts, key_count)
    found = _sessions(order, codes, starts, ends, cells, heads, rows)
    heads = heads[:found]
    return Groups(codes[heads], starts[heads], rows[:found].copy(), cells, found, None)


def _order(
    codes: NDArray[np.int64], starts: NDArray[np.int64], key_count: int
) -> NDArray[np.int64]:
    if key_count > _CODES_PER_ROW * len(codes):
        return np.lexsort((starts, codes))
    order, spare = np.empty(len(codes), np.int64), np.empty(len(codes), np.int64)
    edges = np.zeros(key_count + 1, np.int64)
    _by_code(codes, edges, order)
    order_runs(edges, starts, order, spare)
    return order


@kernel((INTS, OUT_INTS, OUT_INTS))
def _by_code(codes: Any, edges: Any, order: Any) -> None:
    """Sort rows by code, stable; ``edges[code]`` becomes the end of the code's rows."""
    for i in range(codes.size):
        edges[codes[i] + 1] += 1
    for code in range(edges.size - 1):
        edges[code + 1] += edges[code]
    for i in range(codes.size):
        order[edges[codes[i]]] = i
        edges[codes[i]] += 1


@kernel((INTS, INTS, INTS, INTS, OUT_INTS32, OUT_INTS, OUT_INTS))
def _sessions(
    order: Any, codes: Any, starts: Any, ends: Any, cells: Any, heads: Any, rows: Any
) -> Any:
    """Number the session of every row; return how many there are."""
    session, code, end = -1, -1, 0
    for i in range(order.size):
        row = order[i]
        if codes[row] != code or starts[row] > end:
            session += 1
            heads[session] = row
            code, end = codes[row], ends[row]
        else:
            end = max(end, ends[row])
        cells[row] = session
        rows[session] += 1
    return session + 1
