"""Bounds of left rows among right rows, by merge path: blocks merge tiles of equal size.

The merge of both sides is cut into tiles of `TILE` rows, of whichever side, so that no hot key and
no gap makes one block slower than another. Where a tile begins on either side is found on its
diagonal of the grid of left and right rows; then a block reads the rows of the tile, neighbours
side by side, into shared memory, and each of its threads merges a few.

Source: Green, McColl and Bader, "GPU merge path" (2012).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_windows.kernels.contract.joins import Side
from gpu_windows.kernels.cuda import primitives, rules
from gpu_windows.kernels.cuda.compiler import cuda, device_function
from gpu_windows.kernels.cuda.kernel import kernel
from gpu_windows.kernels.cuda.primitives import THREADS
from gpu_windows.kernels.cuda.types import INT, INTS

#: Rows that a thread merges: an odd number, so that threads of a warp read different banks.
_ROWS_A_THREAD = 7
#: Rows of a tile.
TILE = THREADS * _ROWS_A_THREAD

#: Bounds of a left row: the number of right rows before (code, ts + lower), and the number of those
#: up to (code, ts + upper).
LOWER, UPPER, BOTH = range(3)


def bounds(left: Side, right: Side, lower: int, upper: int, kind: int = BOTH) -> tuple[Any, Any]:
    """Return the lower and the upper bound of every left row: int64[n] twice, ascending.

    Parameters
    ----------
    left, right : Side
        Of n and of any number of rows.
    lower, upper : int
        Ticks; a sum beyond int64 is the end of int64.
    kind : int
        LOWER or UPPER: only this one is found, and the other array has no element.
    """
    rows, count = len(left.codes), len(right.codes)
    first = primitives.empty(0 if kind == UPPER else rows, np.int64)
    last = primitives.empty(0 if kind == LOWER else rows, np.int64)
    tiles = -(-(rows + count) // TILE) if rows else 0
    begins = primitives.empty(2 * tiles if kind == BOTH else tiles, np.int64)
    sides = *left, *right, rows, count, lower, upper, kind
    _find_tiles(len(begins), *sides, begins)
    _merge_tiles(len(begins) * THREADS, *sides, begins, first, last)
    return first, last


@device_function
def _tile_of(item: Any, kind: Any) -> Any:
    """Return the bound and the tile of an item; tiles of both bounds take turns, to share reads."""
    if kind == BOTH:
        return item % 2, item // 2
    return kind, item


@device_function
def _comes_first(
    right_code: Any, right_ts: Any, left_code: Any, shifted_ts: Any, bound: Any
) -> Any:
    """Whether a right row is before the bound of a left row."""
    if bound == LOWER:
        return rules.precedes(right_code, right_ts, left_code, shifted_ts)
    return not rules.precedes(left_code, shifted_ts, right_code, right_ts)


@kernel((INTS, INTS, INTS, INTS, INT, INT, INT, INT, INT, INTS))
def _find_tiles(
    left_codes: Any, left_ts: Any, right_codes: Any, right_ts: Any,
    rows: Any, count: Any, lower: Any, upper: Any, kind: Any, begins: Any,
) -> None:  # fmt: skip
    """Find the first left row of every tile."""
    for item in range(cuda.grid(1), begins.size, cuda.gridsize(1)):
        bound, tile = _tile_of(item, kind)
        diagonal, by = tile * TILE, lower if bound == LOWER else upper
        low, high = max(0, diagonal - count), min(diagonal, rows)
        while low < high:
            i = (low + high) // 2
            j = diagonal - 1 - i
            shifted = rules.add_saturating(left_ts[i], by)
            if _comes_first(right_codes[j], right_ts[j], left_codes[i], shifted, bound):
                high = i
            else:
                low = i + 1
        begins[item] = low


@kernel((INTS, INTS, INTS, INTS, INT, INT, INT, INT, INT, INTS, INTS, INTS))
def _merge_tiles(
    left_codes: Any, left_ts: Any, right_codes: Any, right_ts: Any,
    rows: Any, count: Any, lower: Any, upper: Any, kind: Any, begins: Any, first: Any, last: Any,
) -> None:  # fmt: skip
    """Merge a tile; its left rows come first in shared memory."""
    codes, ts = cuda.shared.array(TILE, INT), cuda.shared.array(TILE, INT)
    found = cuda.shared.array(TILE, np.int16)  # of right rows of the tile
    lane = cuda.threadIdx.x
    for item in range(cuda.blockIdx.x, begins.size, cuda.gridDim.x):
        bound, tile = _tile_of(item, kind)
        diagonal, by = tile * TILE, lower if bound == LOWER else upper
        after = item + (2 if kind == BOTH else 1)
        left = begins[item]
        lefts = (begins[after] if after < begins.size else rows) - left
        right, size = diagonal - left, min(TILE, rows + count - diagonal)
        for place in range(lane, size, THREADS):
            if place < lefts:
                codes[place] = left_codes[left + place]
                ts[place] = rules.add_saturating(left_ts[left + place], by)
            else:
                codes[place] = right_codes[right + place - lefts]
                ts[place] = right_ts[right + place - lefts]
        cuda.syncthreads()
        own = min(lane * _ROWS_A_THREAD, size)
        low, high = max(0, own - (size - lefts)), min(own, lefts)
        while low < high:
            i = (low + high) // 2
            j = lefts + own - 1 - i
            if _comes_first(codes[j], ts[j], codes[i], ts[i], bound):
                high = i
            else:
                low = i + 1
        i, j = low, lefts + own - low
        for _ in range(min(_ROWS_A_THREAD, size - own)):
            is_right = i == lefts
            if not is_right and j < size:
                is_right = _comes_first(codes[j], ts[j], codes[i], ts[i], bound)
            if is_right:
                j += 1
            else:
                found[i] = j - lefts
                i += 1
        cuda.syncthreads()
        for place in range(lane, lefts, THREADS):
            if bound == LOWER:
                first[left + place] = right + found[place]
            else:
                last[left + place] = right + found[place]
