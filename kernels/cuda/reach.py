"""The smallest, the greatest and a count of many integers: threads write theirs to marks."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_windows.kernels.cuda import primitives
from gpu_windows.kernels.cuda.compiler import cuda, device_function
from gpu_windows.kernels.cuda.kernel import kernel
from gpu_windows.kernels.cuda.primitives import THREADS
from gpu_windows.kernels.cuda.types import INT, INTS
from gpu_windows.rules import LONG_MAX, LONG_MIN

#: Marks of each kind.
_PLACES = 1 << 10


def make_marks() -> Any:
    """Return what threads write to: int64[3 * places], nothing written yet.

    First come the smallest, then the greatest, then counts.
    """
    marks = primitives.empty(3 * _PLACES, np.int64)
    _clear(len(marks), marks)
    return marks


@kernel((INTS,))
def _clear(marks: Any) -> None:
    places = marks.size // 3
    for i in range(cuda.grid(1), marks.size, cuda.gridsize(1)):
        if i < places:
            marks[i] = LONG_MAX
        elif i < 2 * places:
            marks[i] = LONG_MIN
        else:
            marks[i] = 0


@device_function
def note_extremes(thread: Any, smallest: Any, greatest: Any, marks: Any) -> None:
    """Write the smallest and the greatest of a thread's items."""
    places = marks.size // 3
    place = thread % places
    cuda.atomic.min(marks, place, smallest)
    cuda.atomic.max(marks, places + place, greatest)


@device_function
def add_count(thread: Any, count: Any, marks: Any) -> None:
    """Add to the count."""
    places = marks.size // 3
    cuda.atomic.add(marks, 2 * places + thread % places, count)


def read_marks(marks: Any) -> tuple[int, int, int]:
    """Return the smallest, the greatest and the count that all threads wrote; wait for them."""
    out = primitives.empty(3, np.int64)
    _summarize(len(out), marks, out)
    smallest, greatest, count = primitives.to_host(out).tolist()
    return smallest, greatest, count


@kernel((INTS, INTS))
def _summarize(marks: Any, out: Any) -> None:
    """Put the marks together, in the first block."""
    if cuda.blockIdx.x > 0:
        return
    lows = cuda.shared.array(THREADS, INT)
    highs = cuda.shared.array(THREADS, INT)
    counts = cuda.shared.array(THREADS, INT)
    lane, places = cuda.threadIdx.x, marks.size // 3
    smallest, greatest, count = LONG_MAX, LONG_MIN, 0
    for place in range(lane, places, THREADS):
        smallest = min(smallest, marks[place])
        greatest = max(greatest, marks[places + place])
        count += marks[2 * places + place]
    lows[lane], highs[lane], counts[lane] = smallest, greatest, count
    distance = THREADS // 2
    while distance > 0:
        cuda.syncthreads()
        if lane < distance:
            lows[lane] = min(lows[lane], lows[lane + distance])
            highs[lane] = max(highs[lane], highs[lane + distance])
            counts[lane] += counts[lane + distance]
        distance //= 2
    if lane == 0:
        out[0], out[1], out[2] = lows[0], highs[0], counts[0]


def reach_of(values: Any) -> tuple[int, int]:
    """Return the smallest and the greatest of int64[n], n > 0, reading them once."""
    marks = make_marks()
    _reach(len(values), values, marks)
    smallest, greatest, _ = read_marks(marks)
    return smallest, greatest


@kernel((INTS, INTS))
def _reach(values: Any, marks: Any) -> None:
    thread, smallest, greatest = cuda.grid(1), LONG_MAX, LONG_MIN
    for i in range(thread, values.size, cuda.gridsize(1)):
        smallest, greatest = min(smallest, values[i]), max(greatest, values[i])
    if thread < values.size:
        note_extremes(thread, smallest, greatest, marks)
