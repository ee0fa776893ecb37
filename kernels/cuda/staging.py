"""Moves of large arrays between host and device: by pinned memory, on a stream of their own.

Memory that a program allocates may be moved by the system, so a device copies from it by way of
pinned memory only. CuPy pins as much as an array has bytes when it moves one to the device, keeps
that for arrays of the very same size, and fills it in one thread before the transfer begins; to the
host the driver copies piece by piece. Here a ring of few chunks is pinned, once. An array is cut
into pieces of a chunk each: threads of the host copy some while others are transferred. An array
that comes in pieces, such as a chunked column of Arrow, or whose values are narrower on the host,
becomes one as it is copied there. These threads call NumPy only: CUDA would make them a context of
its first device, whichever is ours.

Why no byte is read before it is written, nor overwritten before it is read:

* A chunk has one event, recorded behind the transfer of each piece in it. The host waits for it
  before it writes the next piece into the chunk, or reads the piece that came. A transfer is
  enqueued after the copy of the host that filled the chunk, or emptied it, has returned.
* CuPy's pool keeps free memory by stream, and so in effect does RAPIDS'. What it gives out on the
  kernels' stream may be in use by kernels that are enqueued there and by no others. So the copies'
  stream waits for all that is enqueued on the kernels' stream once the memory is allocated. To the
  host, the same wait is for the kernels that write the array. What somebody does on the default
  stream is waited for, too: the kernels' stream waits for that before it goes on.
* The kernels' stream waits for the last transfer to the device, so whatever it runs later finds the
  array; and memory of an array that is collected goes back to that stream's part of the pool. An
  upload for later makes it wait when its array is taken (`Upload.land`), so that kernels of this
  batch do not wait for the next one; if nobody takes it, before its memory goes back.
  A move to the host returns when all is there, so its array may be collected.
* An error in the middle (an interrupt, too) leaves when the threads have ended and the copies'
  stream is empty: nothing writes into memory that the pool may give to others. The ring is given
  up, the next move makes a new one.
* When a move returns, the host's array has been read. Nobody may change it while a move lasts.

The wait for kernels that ran before costs next to nothing: they read device memory, which is ten
times and more as fast as the way there, and threads fill the whole ring meanwhile. Memory of the
copies' own part of the pool would not do without it: kernels may still read what was there before.
"""

from __future__ import annotations

import logging
import os
import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import cycle
from threading import Lock
from typing import Any

import numpy as np

from gpu_windows.kernels.contract.arrays import DeviceArray, HostArray
from gpu_windows.kernels.lazy_array import Pieces, fill

logger = logging.getLogger(__name__)

#: Bytes of a chunk, and how many there are. A transfer of one takes a hundred microseconds, a few
#: times what the calls for it take. To an H200, beside 16 cores, 8 threads moved 46.8 GB/s by 16
#: chunks, 4 threads 27.8 by 8; pinned memory moved 55, and CuPy 1.2 from memory that it had not
#: seen (benchmarks/results).
CHUNK_BYTES, CHUNKS = 4 << 20, 16
#: Arrays of fewer bytes go to the device as CuPy moves them, nor does a thread copy fewer.
MIN_BYTES = 1 << 20
#: Threads that copy on the host, at most.
_THREADS = 8

#: The types that CuPy has, by NumPy's letters.
_TYPES = frozenset("?bhilqBHILQefdFD")


def copying_threads() -> int:
    """Return how many threads copy on the host: few, and no more than this process has cores."""
    if hasattr(os, "sched_getaffinity"):
        return min(_THREADS, len(os.sched_getaffinity(0)))
    return min(_THREADS, os.cpu_count() or 1)


class Staging:
    """The moves of a session that are worth staging; pinned memory is had when the first comes.

    Where none can be had, arrays go the plain way from then on. Calls may come from several
    threads; one moves at a time. The session's device, stream and pool are current.

    Parameters
    ----------
    library : module
        CuPy.
    kernels : stream
        The kernels'. Device memory is allocated on it.
    chunk_bytes, chunks : int
        Bytes of a chunk, and how many there are, at least one.
    min_bytes : int
        Fewer are not worth it.
    threads : int, optional
        That copy on the host. Default: `copying_threads`; one is the caller.
    """

    def __init__(
        self,
        library: Any,
        kernels: Any,
        *,
        chunk_bytes: int = CHUNK_BYTES,
        chunks: int = CHUNKS,
        min_bytes: int = MIN_BYTES,
        threads: int | None = None,
    ) -> None:
        self._library, self._kernels = library, kernels
        self._chunk_bytes, self._chunks, self._min_bytes = chunk_bytes, chunks, min_bytes
        self._threads = copying_threads() if threads is None else threads
        self._ring: _Ring | None = None
        self._refused = False
        self._lock = Lock()

    def upload(self, array: HostArray | Pieces) -> Upload | None:
        """Begin a copy to the device; None if the array must go the plain way.

        The host does not wait for it. Pieces become one array, of their type, as they are copied
        into pinned memory.
        """
        if array.nbytes < self._min_bytes:
            return None
        if array.dtype.char not in _TYPES or not array.dtype.isnative:
            return None
        parts = array.parts if isinstance(array, Pieces) else [array]
        if any(type(part) is not np.ndarray or part.ndim != 1 for part in parts):
            return None
        with self._lock:
            ring = self._open()
            if ring is None:
                return None
            there = self._library.empty(len(array), array.dtype)
            with self._close_on_error():
                landed = ring.up(parts, there, self._step(array.nbytes))
            return Upload(there, self._kernels, landed)

    def to_host(self, array: DeviceArray) -> HostArray | None:
        """Return a copy on the host, complete; None if the array must go the plain way."""
        if not isinstance(array, self._library.ndarray) or array.nbytes <= self._chunk_bytes:
            return None
        if not array.flags.c_contiguous:
            return None
        with self._lock:
            ring = self._open()
            if ring is None:
                return None
            here = np.empty(array.shape, array.dtype)
            with self._close_on_error():
                ring.down(array, here.reshape(-1).view(np.uint8), self._step(array.nbytes))
            return here

    def release(self) -> None:
        """Give the pinned memory back; the next large move allocates again."""
        with self._lock:
            self._close()

    def _open(self) -> _Ring | None:
        if self._ring is None and not self._refused:
            sizes = self._chunk_bytes, self._chunks, self._threads
            try:
                self._ring = _Ring(self._library, self._kernels, *sizes)
            except (MemoryError, RuntimeError) as error:  # CUDA's errors are RuntimeErrors
                self._refused = True
                logger.warning("arrays move through memory that is not pinned: %s", error)
        return self._ring

    @contextmanager
    def _close_on_error(self) -> Iterator[None]:
        """Let no error out while anything moves."""
        try:
            yield
        except BaseException:
            self._close()
            raise

    def _close(self) -> None:
        ring, self._ring = self._ring, None
        if ring is not None:
            ring.settle()

    def _step(self, size: int) -> int:
        """Return how many bytes a piece has, so that all threads have some of a small array."""
        return min(self._chunk_bytes, max(self._min_bytes, -(-size // self._threads)))


class Upload:
    """An array that is on its way to the device.

    Parameters
    ----------
    array : device array
        Which kernels may read once it has landed.
    kernels : stream, optional
        Of those kernels. Default: the copy is on their stream, or complete.
    landed : event, optional
        Behind the last transfer.
    """

    def __init__(self, array: DeviceArray, kernels: Any = None, landed: Any = None) -> None:
        self.array = array
        self._landing: weakref.finalize[..., Upload] | None = None
        if landed is not None:  # at the latest when this is collected, before the array's memory is
            self._landing = weakref.finalize(self, _wait, kernels, landed, array)
            self._landing.atexit = False

    def land(self) -> DeviceArray:
        """Return the array; kernels that are launched from now on wait for it."""
        if self._landing is not None:
            self._landing()  # once
        return self.array


def _wait(kernels: Any, landed: Any, array: DeviceArray) -> None:
    del array  # whose memory was not free until now
    kernels.wait_event(landed)


class _Chunk:
    """Some pinned memory, the transfer that was enqueued last, and the host's copy that runs."""

    def __init__(self, cuda: Any, size: int) -> None:
        memory = cuda.PinnedMemory(size, cuda.runtime.hostAllocPortable)  # of no pool: it is freed
        pointer = cuda.PinnedMemoryPointer(memory, 0)
        self.address: int = pointer.ptr
        self.bytes = np.frombuffer(pointer, np.uint8, size)
        self.moved = cuda.Event(block=True, disable_timing=True)
        self.copying: Future[None] | None = None

    def join(self) -> None:
        """Wait for the host's copy."""
        copying, self.copying = self.copying, None
        if copying is not None:
            copying.result()


class _Ring:
    """Chunks, the stream of the transfers, and the threads of the host's copies."""

    def __init__(self, library: Any, kernels: Any, size: int, count: int, threads: int) -> None:
        cuda = library.cuda
        self._cuda, self._runtime, self._kernels = cuda, cuda.runtime, kernels
        self._copies = cuda.Stream(non_blocking=True)
        self._before = cuda.Event(disable_timing=True)
        self._chunks = [_Chunk(cuda, size) for _ in range(count)]
        self._pool = ThreadPoolExecutor(threads, "staging") if threads > 1 else None

    def up(self, parts: Sequence[HostArray], there: DeviceArray, step: int) -> Any:
        """Copy arrays of one dimension to the device, one after the other, as its type.

        Returns the event behind the last transfer.
        """
        dtype, begin = there.dtype, there.data.ptr
        ahead = max(0, len(self._chunks) - 2)  # so that a transfer is enqueued behind the awaited
        sending: deque[tuple[_Chunk, int, int]] = deque()
        self._wait_for_kernels()
        groups = _cut(parts, max(1, step // dtype.itemsize))
        for group, chunk in zip(groups, cycle(self._chunks), strict=False):
            if len(sending) > ahead:
                self._send(*sending.popleft())
            size = sum(map(len, group)) * dtype.itemsize
            chunk.moved.synchronize()
            chunk.copying = self._copy(chunk.bytes[:size].view(dtype), group)
            sending.append((chunk, begin, size))
            begin += size
        while sending:
            self._send(*sending.popleft())
        landed = self._cuda.Event(disable_timing=True)
        landed.record(self._copies)
        return landed

    def down(self, array: DeviceArray, here: HostArray, step: int) -> None:
        """Copy an array to the bytes of one on the host."""
        arriving: deque[tuple[_Chunk, HostArray]] = deque()
        self._wait_for_kernels()
        for begin, chunk in zip(range(0, len(here), step), cycle(self._chunks), strict=False):
            if len(arriving) > len(self._chunks) // 2:
                self._receive(*arriving.popleft())
            piece = here[begin : begin + step]
            chunk.join()
            sides = chunk.address, array.data.ptr + begin, len(piece)
            self._transfer(chunk, *sides, self._runtime.memcpyDeviceToHost)
            arriving.append((chunk, piece))
        while arriving:
            self._receive(*arriving.popleft())
        for chunk in self._chunks:
            chunk.join()

    def settle(self) -> None:
        """Wait until nothing moves; the ring cannot be used afterwards."""
        if self._pool is not None:
            self._pool.shutdown()
        self._copies.synchronize()

    def _wait_for_kernels(self) -> None:
        """Make later transfers wait for all that the kernels' stream has to do."""
        self._before.record(self._kernels)
        self._copies.wait_event(self._before)

    def _send(self, chunk: _Chunk, address: int, size: int) -> None:
        chunk.join()
        sides = address, chunk.address, size
        self._transfer(chunk, *sides, self._runtime.memcpyHostToDevice)

    def _receive(self, chunk: _Chunk, piece: HostArray) -> None:
        chunk.moved.synchronize()
        chunk.copying = self._copy(piece, [chunk.bytes[: len(piece)]])

    def _transfer(self, chunk: _Chunk, to: int, source: int, size: int, kind: int) -> None:
        self._runtime.memcpyAsync(to, source, size, kind, self._copies.ptr)
        chunk.moved.record(self._copies)

    def _copy(self, to: HostArray, sources: Sequence[HostArray]) -> Future[None] | None:
        """Copy on the host, in a thread if there are some."""
        if self._pool is None:
            fill(to, sources)
            return None
        return self._pool.submit(fill, to, sources)


def _cut(parts: Sequence[HostArray], max_items: int) -> Iterator[list[HostArray]]:
    """Yield what follows each other of some arrays, ``max_items`` items at once, at last fewer."""
    group: list[HostArray] = []
    capacity = max_items
    for part in parts:
        begin = 0
        while begin < len(part):
            group.append(part[begin : begin + capacity])
            begin += len(group[-1])
            capacity -= len(group[-1])
            if capacity == 0:
                yield group
                group, capacity = [], max_items
    if group:
        yield group
