"""A stand-in for what staging takes of CuPy: streams, events, pinned memory, a pool, transfers.

Work on a stream runs whenever the order of streams and events permits: as late as somebody waits
for it, as early as it is enqueued, or at any moment between, as a `Pace` says. So do the copies
that threads make on the host. The pool gives free memory to whoever asks for some, as CuPy's does
on one stream, whatever enqueued kernels still do with it.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np

#: Work on a stream: to be done, once what it waits for is done.
Work = tuple[Callable[[], None], "tuple[Stream, int] | None"]


class Pace:
    """When work runs that may run.

    Parameters
    ----------
    chance : float
        That some of it runs at a call: 0 is as late as possible, 1 as early.
    random : Random
    """

    def __init__(self, chance: float, random: Random) -> None:
        self.chance, self.random = chance, random
        self.runners: list[Callable[[], bool]] = []

    def pass_time(self) -> None:
        """Let some of the work run, as the machine might at any moment."""
        runners = list(self.runners)
        while runners and self.random.random() < self.chance:
            runner = self.random.choice(runners)
            if not runner():
                runners.remove(runner)


class Stream:
    """A queue of work."""

    def __init__(self, pace: Pace, streams: dict[int, Stream]) -> None:
        self._pace, self._work = pace, list[Work]()
        self.done = 0
        self.ptr = len(streams) + 1
        streams[self.ptr] = self
        pace.runners.append(self.step)

    @property
    def enqueued(self) -> int:
        """Number of pieces of work so far."""
        return self.done + len(self._work)

    def enqueue(self, run: Callable[[], None], after: tuple[Stream, int] | None = None) -> None:
        """Add work that waits for what an event stands for."""
        self._work.append((run, after))
        self._pace.pass_time()

    def step(self) -> bool:
        """Do the next work if it may run; return whether it did."""
        if not self._work:
            return False
        run, after = self._work[0]
        if after is not None and after[0].done < after[1]:
            return False
        self._work.pop(0)
        run()
        self.done += 1
        return True

    def force(self, count: int) -> None:
        """Do the first ``count`` of all work so far, and what it waits for."""
        while self.done < count:
            _, after = self._work[0]
            if after is not None:
                after[0].force(after[1])
            assert self.step()

    def synchronize(self) -> None:
        """See CuPy's."""
        self.force(self.enqueued)

    def wait_event(self, event: Event) -> None:
        """See CuPy's: it waits for what the event stands for now."""
        self.enqueue(lambda: None, event.place)


class Event:
    """A place in the queue of a stream."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self.place: tuple[Stream, int] | None = None

    def record(self, stream: Stream) -> None:
        """See CuPy's."""
        self.place = stream, stream.enqueued
        self._pace.pass_time()

    def synchronize(self) -> None:
        """See CuPy's: it returns at once if the event was never recorded."""
        if self.place is not None:
            stream, count = self.place
            stream.force(count)
        self._pace.pass_time()


class Array:
    """An array on the device. Its memory is free when it is collected."""

    def __init__(self, memory: Any, size: int, dtype: Any) -> None:
        self.dtype, self.shape = np.dtype(dtype), (size,)
        self.nbytes = size * self.dtype.itemsize
        self.flags = SimpleNamespace(c_contiguous=True)
        self.data = SimpleNamespace(ptr=memory.ctypes.data)
        #: The same memory to the kernels.
        self.values = memory[: self.nbytes].view(dtype)


class Job:
    """A call that a thread of the host makes some time."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call: Callable[[], None] | None = call
        self._error: Exception | None = None

    def run(self) -> bool:
        """Make the call if that is not done; return whether it was to do."""
        call, self._call = self._call, None
        if call is None:
            return False
        try:
            call()
        except RuntimeError as error:
            self._error = error
        return True

    def result(self) -> None:
        """See `concurrent.futures.Future`."""
        self.run()
        if self._error is not None:
            raise self._error


class Pretended:
    """CuPy, as far as staging knows it.

    Parameters
    ----------
    pace : Pace

    Attributes
    ----------
    kernels : Stream
    pinned : int
        Bytes that are pinned now.
    refuses : int
        Number of the piece of pinned memory that cannot be had; -1 for none.
    fails_at : int
        Number of the transfer that fails; -1 for none.
    """

    ndarray = Array

    def __init__(self, pace: Pace) -> None:
        self.pace = pace
        self._streams: dict[int, Stream] = {}
        self._free: list[Any] = []
        self._pools: list[Threads] = []
        self.pinned, self.refuses, self.fails_at = 0, -1, -1
        self.kernels = Stream(pace, self._streams)
        runtime = SimpleNamespace(
            hostAllocPortable=1,
            memcpyHostToDevice=1,
            memcpyDeviceToHost=2,
            memcpyAsync=self._transfer,
        )
        self.cuda = SimpleNamespace(
            runtime=runtime,
            Stream=lambda non_blocking: Stream(pace, self._streams),
            Event=lambda block=False, disable_timing=False: Event(pace),
            PinnedMemory=self._pin,
            PinnedMemoryPointer=lambda memory, offset: memory,
        )

    def empty(self, size: int, dtype: Any) -> Array:
        """Give the memory that became free last, if it is large enough."""
        needed = size * np.dtype(dtype).itemsize
        fit = [memory for memory in self._free if len(memory) >= needed]
        memory = fit[-1] if fit else np.full(needed, 0xEE, np.uint8)
        self._free[:] = [free for free in self._free if free is not memory]
        made = Array(memory, size, dtype)
        weakref.finalize(made, self._free.append, memory)
        return made

    def launch(self, kernel: Callable[[], None]) -> None:
        """Enqueue a kernel."""
        self.kernels.enqueue(kernel)

    def threads(self, *_: Any) -> Threads:
        """Return what stands for a pool of threads."""
        made = Threads(self.pace)
        self._pools.append(made)
        return made

    def still(self) -> bool:
        """Whether no transfer is enqueued, and no thread copies."""
        transfers = [stream for stream in self._streams.values() if stream is not self.kernels]
        return all(stream.done == stream.enqueued for stream in transfers) and not any(
            job.run() for pool in self._pools for job in pool.jobs
        )

    def finish(self) -> None:
        """Do all work."""
        for stream in self._streams.values():
            stream.synchronize()

    def _pin(self, size: int, flags: int) -> Any:
        if self.refuses == 0:
            raise RuntimeError("cudaErrorMemoryAllocation: out of memory")
        self.refuses -= 1
        memory = _Pinned(size)
        self.pinned += size
        weakref.finalize(memory, self._unpin, size)
        return memory

    def _unpin(self, size: int) -> None:
        self.pinned -= size

    def _transfer(self, to: int, source: int, size: int, kind: int, stream: int) -> None:
        if self.fails_at == 0:
            raise RuntimeError("cudaErrorInvalidValue: invalid argument")
        self.fails_at -= 1
        self._streams[stream].enqueue(lambda: _move(to, source, size))


class _Pinned(bytearray):
    """Memory with an address."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.ptr = ctypes.addressof(ctypes.c_char.from_buffer(self))


def _move(to: int, source: int, size: int) -> None:
    ctypes.memmove(to, source, size)


class Threads:
    """A pool of threads; each call is made some time before somebody waits for it."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self.jobs: list[Job] = []

    def submit(self, function: Callable[..., None], *arguments: Any) -> Job:
        """See `concurrent.futures.Executor`."""
        job = Job(lambda: function(*arguments))
        self.jobs.append(job)
        self._pace.runners.append(job.run)
        self._pace.pass_time()
        return job

    def shutdown(self) -> None:
        """See `concurrent.futures.Executor`."""
        for job in self.jobs:
            job.run()
