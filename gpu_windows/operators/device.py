"""The back end of an operator: chosen per call, with a way out when device memory runs out."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from gpu_windows.errors import DeviceMemoryError
from gpu_windows.kernels import task
from gpu_windows.kernels.backend import Backend, probe, select
from gpu_windows.operators.counters import Counters
from gpu_windows.vocabulary.options import Device

logger = logging.getLogger(__name__)

T = TypeVar("T")
R = TypeVar("R")

#: With ``device="auto"``, smaller batches are not worth the trip to a device.
WORTH_ROWS = 1 << 16
#: With ``device="auto"``, a unit that one thread runs must not be more than this part of all rows,
#: over the threads of the CPU. 1,048,576 rows of 1,000 keys, in windows that fire every 100 rows,
#: took 223 ms on an H200 and 93 ms on 16 cores (docs/gpus.md).
_LARGEST_UNIT = 1 / 256
#: A batch that does not fit device memory is halved down to this many rows, then the CPU's.
_LEAST_ROWS = 1 << 14
#: After so many calls that a device had no room for, the rest of a task is the CPU's.
MOST_FALLBACKS = 3


def begin_task(addresses: tuple[str, ...], share: float, number: int) -> None:
    """Say that this process begins a task, and what a scheduler granted it; the one before is over.

    Parameters
    ----------
    addresses : tuple of str
        GPUs, as CUDA numbers them or by UUID; empty: none was granted, so ``device="auto"`` takes
        none, unless ``CUDA_VISIBLE_DEVICES`` names some for the process.
    share : float
        How much of a GPU's memory the task may hold, in (0, 1].
    number : int
        Of the task: it says which GPU one takes that was granted none and has ``device="cuda"``.
    """
    task.begin(task.Grant(addresses, share, number))


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


@dataclass(frozen=True)
class _Done(Generic[T]):
    """What a call gave that did not run out of memory."""

    result: T


class Kernels:
    """Runs kernels on the back end that ``device`` asks for, and counts on which they ran.

    Work that runs out of device memory is run again, in halves or on the CPU: so it must give what
    it makes back, and change nothing else.

    On the CPU keys are encoded batch by batch, in order, while threads assign, group and reduce the
    batches before; then threads merge and fire a partial each. Which rows a call has does not
    depend on the number of threads, so results do not either, to the last bit.

    Parameters
    ----------
    device : {"auto", "cpu", "cuda"}
        Where kernels run; "auto" goes back to the CPU where a device cannot be used.
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
        self._task = task.current()
        self._backend = select(device)
        self._always = device != "auto" or self._backend.name == "cpu"
        self._pool = ThreadPoolExecutor(threads, "kernels") if threads > 1 else None
        self.threads = threads
        self._calls = {"cpu": 0, "cuda": 0}
        self._fallbacks = 0
        self._most_rows: int | None = None  # of a batch, if a larger one ran out of memory
        self._most_prepared: int | None = None  # as well, of what `prepare` is given

    def run(self, rows: int, work: Callable[[Backend, Map], T]) -> T:
        """Call ``work`` with a back end for ``rows`` rows; on the CPU if memory runs out.

        ``work`` is also given a ``map`` for what can be done in parallel.
        """
        return self._run(rows, work, on_device=self._wants_device(rows))

    def run_units(self, sizes: NDArray[np.int64], work: Callable[[Backend, Map], T]) -> T:
        """Call ``work`` for units each of which one thread runs, row after row.

        Where it may be, that is not the device if one unit would keep the others waiting.

        Parameters
        ----------
        sizes : int64[units]
            Rows of every unit.
        work : callable
            See `run`.
        """
        rows, largest = int(sizes.sum()), int(sizes.max(initial=0))
        fits = self._always or largest * self.threads <= rows * _LARGEST_UNIT
        return self._run(rows, work, on_device=fits and self._wants_device(rows))

    def _run(self, rows: int, work: Callable[[Backend, Map], T], *, on_device: bool) -> T:
        if on_device:
            done = None if self._gave_up else self._try(rows, lambda backend: work(backend, map))
            if done is not None:
                return done.result
            self._fall_back(rows)
        result = work(select("cpu"), self._map)
        self._calls["cpu"] += 1
        return result

    def each(self, pieces: Iterable[P], work: Callable[[Backend, P], T]) -> list[T]:
        """Call ``work`` with a back end and every piece; in halves where memory runs out.

        On the CPU several pieces are worked at while the next ones are still made.
        """
        if self._backend.name != "cpu" and not self._gave_up:
            return [result for piece in pieces for result in self._worked(piece, work)]
        cpu = select("cpu")
        results = list(self._map(lambda piece: work(cpu, piece), self._given_up(pieces)))
        self._calls["cpu"] += len(results)
        return results

    def prepare(self, piece: P, work: Callable[[Backend, P], T]) -> list[T]:
        """Call ``work`` with a back end and what a call needs; in halves where memory runs out.

        In this thread. It is no batch: the call that takes what is made is counted as one. What the
        CPU must take over counts as a fallback, but a task does not give its device up for it. What
        ``work`` changes, such as a dictionary, it must leave the same when it is run again.
        """
        if self._gave_up or not self._wants_device(len(piece)):
            return [work(select("cpu"), piece)]
        before = self._calls["cuda"]
        made = [*self._prepared(piece, work)]
        self._calls["cuda"] = before
        return made

    def _prepared(self, piece: P, work: Callable[[Backend, P], T]) -> Iterator[T]:
        rows, most = len(piece), self._most_prepared
        if most is None or rows <= most:
            done = self._try(rows, lambda backend: work(backend, piece))
            if done is not None:
                yield done.result
                return
            self._most_prepared = max(-(-rows // 2), _LEAST_ROWS)
        if rows > _LEAST_ROWS:
            for half in piece.halves():
                yield from self._prepared(half, work)
            return
        self._fallbacks += 1
        logger.warning("%d rows are prepared by the CPU", rows)
        yield work(select("cpu"), piece)

    def _worked(self, piece: P, work: Callable[[Backend, P], T]) -> Iterable[T]:
        if self._wants_device(len(piece)):
            return self._halving(piece, work)
        return [self._run(len(piece), lambda backend, _: work(backend, piece), on_device=False)]

    def _halving(self, piece: P, work: Callable[[Backend, P], T]) -> Iterator[T]:
        rows = len(piece)
        if self._gave_up or rows <= _LEAST_ROWS:
            yield self._run(rows, lambda backend, _: work(backend, piece), on_device=True)
            return
        if self._most_rows is None or rows <= self._most_rows:
            done = self._try(rows, lambda backend: work(backend, piece))
            if done is not None:
                yield done.result
                return
            self._most_rows = -(-rows // 2)
        for half in piece.halves():
            yield from self._halving(half, work)

    def _wants_device(self, rows: int) -> bool:
        """Whether a call for so many rows is the device's, if it has room."""
        if self._backend.name == "cpu" or not (self._always or rows >= WORTH_ROWS):
            return False
        if not self._always:
            self._backend = probe(self._backend)
        return self._backend.name != "cpu"

    @property
    def _gave_up(self) -> bool:
        """Whether the rest of the task is the CPU's."""
        return self._task.fallbacks >= MOST_FALLBACKS

    def _try(self, rows: int, work: Callable[[Backend], T]) -> _Done[T] | None:
        """Call ``work`` on the device; return None if memory ran out, with nothing kept there."""
        done = self._once(rows, work)
        if done is None and self._backend.memory.release():
            logger.info("what was kept on the device has left it, for %d rows", rows)
            done = self._once(rows, work)
        if done is None:
            logger.warning("the device has no room for %d rows", rows)
        return done

    def _once(self, rows: int, work: Callable[[Backend], T]) -> _Done[T] | None:
        """Call ``work`` on the device; return None if memory ran out, with nothing left of it.

        An error holds the frames that it passed, and they hold arrays of the device. So what comes
        next must not happen while it is handled, and no record of the log may hold it either.
        """
        try:
            done = _Done(work(self._backend.remembering()))
        except DeviceMemoryError as error:
            logger.info("out of device memory: %s", str(error))
            return None
        self._calls["cuda"] += 1
        return done

    def _fall_back(self, rows: int) -> None:
        """Count a call that the CPU takes over, and say so."""
        self._fallbacks += 1
        if self._gave_up:
            return
        self._task.fallbacks += 1
        logger.warning("%d rows go to the CPU", rows)
        if self._gave_up:
            said = "the device had no room %d times: the rest of this task goes to the CPU"
            logger.warning(said, self._task.fallbacks)

    def _given_up(self, pieces: Iterable[P]) -> Iterator[P]:
        """Count the pieces that would have been the device's; return all of them."""
        for piece in pieces:
            self._fallbacks += self._wants_device(len(piece))
            yield piece

    @property
    def _map(self) -> Map:
        return map if self._pool is None else self._pool.map

    def counted(self) -> Counters:
        """Return where kernels ran since the last time, and forget it."""
        counters = Counters(
            cpu_batches=self._calls["cpu"],
            cuda_batches=self._calls["cuda"],
            device_fallbacks=self._fallbacks,
        )
        self._calls, self._fallbacks = {"cpu": 0, "cuda": 0}, 0
        return counters
