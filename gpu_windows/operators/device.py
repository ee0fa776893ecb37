"""The back end of an operator: chosen per call, with a way out when device memory runs out."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, Self, TypeVar

from gpu_windows.errors import DeviceMemoryError
from gpu_windows.kernels.backend import Backend, select
from gpu_windows.operators.base import Counters
from gpu_windows.options import Device

logger = logging.getLogger(__name__)

T = TypeVar("T")
R = TypeVar("R")

#: With ``device="auto"``, smaller batches are not worth the trip to a device.
WORTH_ROWS = 1 << 16
#: A batch that does not fit device memory is halved down to this many rows, then the CPU's.
_LEAST_ROWS = 1 << 14


class Halvable(Protocol):
    """Rows that can be worked at in two parts."""

    def __len__(self) -> int: ...

    def halves(self) -> tuple[Self, Self]:
        """Return the first and the second half."""


class Map(Protocol):
    """The built-in ``map``, or one that calls the function in several threads."""

    def __call__(self, function: Callable[[T], R], items: Iterable[T], /) -> Iterable[R]:
        """Return the results in the order of the items."""


P = TypeVar("P", bound=Halvable)


class Kernels:
    """Runs kernels on the back end that ``device`` asks for, and counts on which they ran.

    Parameters
    ----------
    device : {"auto", "cpu", "cuda"}
    threads : int
        Threads in which CPU kernels run; they hold no lock of the interpreter.

    Attributes
    ----------
    threads : int

    Raises
    ------
    DeviceUnavailableError
        If "cuda" is asked for where it cannot be used.
    """

    def __init__(self, device: Device, threads: int = 1) -> None:
        self._backend = select(device)
        self._always = device != "auto" or self._backend.name == "cpu"
        self._pool = ThreadPoolExecutor(threads, "kernels") if threads > 1 else None
        self.threads = threads
        self._calls = {"cpu": 0, "cuda": 0}
        self._fallbacks = 0

    def run(self, rows: int, work: Callable[[Backend, Map], T]) -> T:
        """Call ``work`` with a back end for ``rows`` rows; on the CPU if memory runs out.

        ``work`` is also given a ``map`` for what can be done in parallel.
        """
        backend = self._choose(rows)
        try:
            result = work(backend, self._map(backend))
        except DeviceMemoryError as error:
            logger.warning("%d rows go to the CPU: %s", rows, error)
            self._fallbacks += 1
            backend = select("cpu")
            result = work(backend, self._map(backend))
        self._count(backend, 1)
        return result

    def each(self, pieces: Iterable[P], work: Callable[[Backend, P], T]) -> list[T]:
        """Call ``work`` with a back end and every piece; in halves where memory runs out.

        On the CPU several pieces are worked at while the next ones are still made.
        """
        if self._backend.name != "cpu":
            return [result for piece in pieces for result in self._halving(piece, work)]
        results = list(self._map(self._backend)(lambda piece: work(self._backend, piece), pieces))
        self._count(self._backend, len(results))
        return results

    def _halving(self, piece: P, work: Callable[[Backend, P], T]) -> list[T]:
        if len(piece) <= _LEAST_ROWS:
            return [self.run(len(piece), lambda backend, _: work(backend, piece))]
        backend = self._choose(len(piece))
        try:
            result = work(backend, piece)
        except DeviceMemoryError as error:
            logger.warning("%d rows are halved: %s", len(piece), error)
            return [result for half in piece.halves() for result in self._halving(half, work)]
        self._count(backend, 1)
        return [result]

    def _choose(self, rows: int) -> Backend:
        return self._backend if self._always or rows >= WORTH_ROWS else select("cpu")

    def _map(self, backend: Backend) -> Map:
        return map if self._pool is None or backend.name != "cpu" else self._pool.map

    def _count(self, backend: Backend, calls: int) -> None:
        self._calls["cpu" if backend.name == "cpu" else "cuda"] += calls

    def counted(self) -> Counters:
        """Return where kernels ran since the last time, and forget it."""
        counters = Counters(
            cpu_batches=self._calls["cpu"],
            cuda_batches=self._calls["cuda"],
            device_fallbacks=self._fallbacks,
        )
        self._calls, self._fallbacks = {"cpu": 0, "cuda": 0}, 0
        return counters
