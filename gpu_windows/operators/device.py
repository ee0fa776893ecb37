"""The back end of an operator: chosen per call, with a way out when device memory runs out."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from gpu_windows.errors import DeviceMemoryError
from gpu_windows.kernels.backend import Backend, select
from gpu_windows.operators.base import Counters
from gpu_windows.options import Device

logger = logging.getLogger(__name__)

T = TypeVar("T")

#: With ``device="auto"``, smaller batches are not worth the trip to a device.
WORTH_ROWS = 1 << 16
#: A batch that does not fit device memory is halved down to this many rows, then the CPU's.
_LEAST_ROWS = 1 << 14


class Kernels:
    """Runs kernels on the back end that ``device`` asks for, and counts on which they ran.

    Parameters
    ----------
    device : {"auto", "cpu", "cuda"}

    Raises
    ------
    DeviceUnavailableError
        If "cuda" is asked for where it cannot be used.
    """

    def __init__(self, device: Device) -> None:
        self._backend = select(device)
        self._always = device != "auto" or self._backend.name == "cpu"
        self._calls = {"cpu": 0, "cuda": 0}
        self._fallbacks = 0

    def run(self, rows: int, work: Callable[[Backend], T]) -> T:
        """Call ``work`` with a back end for ``rows`` rows; on the CPU if memory runs out."""
        backend = self._backend if self._always or rows >= WORTH_ROWS else select("cpu")
        try:
            result = work(backend)
        except DeviceMemoryError as error:
            logger.warning("%d rows go to the CPU: %s", rows, error)
            self._fallbacks += 1
            backend = select("cpu")
            result = work(backend)
        self._calls["cpu" if backend.name == "cpu" else "cuda"] += 1
        return result

    def split(self, rows: int, work: Callable[[Backend, int, int], T]) -> list[T]:
        """Call ``work(backend, begin, end)`` over all rows, in halves where memory runs out."""
        return self._split(0, rows, work)

    def _split(self, begin: int, end: int, work: Callable[[Backend, int, int], T]) -> list[T]:
        if end - begin <= _LEAST_ROWS or self._backend.name == "cpu":
            return [self.run(end - begin, lambda backend: work(backend, begin, end))]
        backend = self._backend if self._always or end - begin >= WORTH_ROWS else select("cpu")
        try:
            result = work(backend, begin, end)
        except DeviceMemoryError as error:
            logger.warning("%d rows are halved: %s", end - begin, error)
            middle = (begin + end) // 2
            return self._split(begin, middle, work) + self._split(middle, end, work)
        self._calls["cpu" if backend.name == "cpu" else "cuda"] += 1
        return [result]

    def counted(self) -> Counters:
        """Return where kernels ran since the last time, and forget it."""
        counters = Counters(
            cpu_batches=self._calls["cpu"],
            cuda_batches=self._calls["cuda"],
            device_fallbacks=self._fallbacks,
        )
        self._calls, self._fallbacks = {"cpu": 0, "cuda": 0}, 0
        return counters
