"""Changes of Numba's simulator for kernels whose threads work together in a block.

It runs them as threads of Python. It polls for those that wait at a barrier, so a launch takes as
long as the interpreter lets one thread run; and two threads that declare the same shared array at
the same time are given one each.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from threading import Lock
from typing import Any

#: Seconds that the interpreter lets a simulated thread run.
_TURN = 1e-5


class _Allocations(dict[Any, Any]):
    """The shared arrays of a launch: who finds none makes it while others wait."""

    def __init__(self) -> None:
        self._making = Lock()

    def get(self, place: Any, default: Any = None) -> Any:
        """Return the array of a place in the source; None makes the caller put one there."""
        self._making.acquire()
        found = super().get(place, default)
        if found is not None:
            self._making.release()
        return found

    def __setitem__(self, place: Any, array: Any) -> None:
        super().__setitem__(place, array)
        self._making.release()


def share_arrays() -> None:
    """Make the threads of a block share their arrays, whenever they ask for them."""
    shared: Any = importlib.import_module("numba.cuda.simulator.kernelapi").FakeCUDAShared
    start = shared.__init__

    @wraps(start)
    def start_sharing(self: Any, *arguments: Any) -> None:
        start(self, *arguments)
        self._allocations = _Allocations()

    shared.__init__ = start_sharing


@contextmanager
def switching_often() -> Iterator[None]:
    """Make threads take turns often."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(_TURN)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)
