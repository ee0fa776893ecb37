"""The smallest, the greatest and a count of many integers: each block marks its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_windows.kernels.cuda import primitives
from gpu_windows.kernels.cuda.compiler import cuda, device_function
from gpu_windows.kernels.cuda.kernel import kernel
from gpu_windows.kernels.cuda.primitives import THREADS
from gpu_windows.kernels.cuda.types import INT, INTS
from gpu_windows.rules import LONG_MAX, LONG_MIN

#: Numbers that a block marks.
MARKS = 3


def mark_count(count: int) -> int:
    """Return how many numbers the blocks of a launch over ``count`` items mark."""
    return MARKS * primitives.block_count(count)


@device_function
def _of_block(smallest: Any, greatest: Any, count: Any) -> Any:
    """Return the smallest, the greatest and the sum of what the threads of a block have.

    All of them must come here, and once in a kernel: it has one shared memory.
    """
    lows = cuda.shared.array(THREADS, INT)
    highs = cuda.shared.array(THREADS, INT)
    counts = cuda.shared.array(THREADS, INT)
    lane, distance = cuda.threadIdx.x, THREADS // 2
    lows[lane], highs[lane], counts[lane] = smallest, greatest, count
    while distance > 0:
        cuda.syncthreads()
        if lane < distance:
            lows[lane] = min(lows[lane], lows[lane + distance])
            highs[lane] = max(highs[lane], highs[lane + distance])
            counts[lane] += counts[lane + distance]
        distance //= 2
    cuda.syncthreads()
    return lows[0], highs[0], counts[0]


@device_function
def mark(smallest: Any, greatest: Any, count: Any, marks: Any) -> None:
    """Write the smallest, the greatest and the sum of what a block's threads have.

    All threads of all blocks must come here, once. Where a thread has nothing: `LONG_MAX`,
    `LONG_MIN` and 0.

    Parameters
    ----------
    marks : int64[mark_count]
    """
    smallest, greatest, count = _of_block(smallest, greatest, count)
    if cuda.threadIdx.x == 0:
        place = MARKS * cuda.blockIdx.x
        marks[place], marks[place + 1], marks[place + 2] = smallest, greatest, count


@device_function
def fold_marks(marks: Any) -> Any:
    """Return the smallest, the greatest and the sum of all that blocks marked, to every thread.

    All threads of a block must come here, once, in a launch after the one that marked.
    """
    smallest, greatest, count = LONG_MAX, LONG_MIN, 0
    for place in range(MARKS * cuda.threadIdx.x, marks.size, MARKS * THREADS):
        smallest = min(smallest, marks[place])
        greatest = max(greatest, marks[place + 1])
        count += marks[place + 2]
    return _of_block(smallest, greatest, count)


def read_marks(marks: Any) -> tuple[int, int, int]:
    """Return the smallest, the greatest and the count that all blocks marked; wait for them."""
    out = primitives.empty(MARKS, np.int64)
    _summarize(1, marks, out)
    smallest, greatest, count = primitives.to_host(out).tolist()
    return smallest, greatest, count


@kernel((INTS, INTS))
def _summarize(marks: Any, out: Any) -> None:
    """Put the marks together, in the first block."""
    if cuda.blockIdx.x > 0:
        return
    smallest, greatest, count = fold_marks(marks)
    if cuda.threadIdx.x == 0:
        out[0], out[1], out[2] = smallest, greatest, count


def reach_of(values: Any) -> tuple[int, int]:
    """Return the smallest and the greatest of int64[n], n > 0, reading them once."""
    smallest, greatest, _ = read_marks(mark_reach(values))
    return smallest, greatest


def mark_reach(values: Any) -> Any:
    """Return the marks of int64[n], n > 0, with counts of 0."""
    marks = primitives.empty(mark_count(len(values)), np.int64)
    _reach(len(values), values, marks)
    return marks


@kernel((INTS, INTS))
def _reach(values: Any, marks: Any) -> None:
    smallest, greatest = LONG_MAX, LONG_MIN
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        smallest, greatest = min(smallest, values[i]), max(greatest, values[i])
    mark(smallest, greatest, 0, marks)
