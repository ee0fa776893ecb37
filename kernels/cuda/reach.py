"""The least and the greatest of many integers: threads write those of their items to places."""

from __future__ import annotations

from typing import Any

from gpu_windows.kernels.cuda import primitives
from gpu_windows.kernels.cuda.compiler import SIMULATED, cuda, device_function
from gpu_windows.kernels.cuda.kernel import kernel
from gpu_windows.kernels.cuda.types import INTS
from gpu_windows.rules import LONG_MAX, LONG_MIN

#: Places into which threads write (few for the simulator, whose arrays are small).
PLACES = 1 << (4 if SIMULATED else 10)


def places() -> tuple[Any, Any]:
    """Return where threads write least and greatest: int64[PLACES] each, nothing written yet."""
    return primitives.full(PLACES, LONG_MAX), primitives.full(PLACES, LONG_MIN)


@device_function
def note(thread: Any, least: Any, greatest: Any, lows: Any, highs: Any) -> None:
    """Write the least and the greatest of a thread's items."""
    cuda.atomic.min(lows, thread % lows.size, least)
    cuda.atomic.max(highs, thread % highs.size, greatest)


def reach_of(values: Any) -> tuple[int, int]:
    """Return the least and the greatest of int64[n], n > 0, reading them once."""
    lows, highs = places()
    _reach(len(values), values, lows, highs)
    return primitives.least_and_greatest(lows, highs)


@kernel((INTS, INTS, INTS))
def _reach(values: Any, lows: Any, highs: Any) -> None:
    thread, least, greatest = cuda.grid(1), LONG_MAX, LONG_MIN
    for i in range(thread, values.size, cuda.gridsize(1)):
        least, greatest = min(least, values[i]), max(greatest, values[i])
    if thread < values.size:
        note(thread, least, greatest, lows, highs)
