"""Arrays on the device, and launches of kernels.

Every call works on the device, the stream and the memory pool of the task's session
(`gpu_windows.kernels.cuda.session`). Arrays are one-dimensional and contiguous, on the device.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpu_windows.kernels.contract.arrays import DeviceArray, HostArray
from gpu_windows.kernels.cuda.session import working
from gpu_windows.kernels.cuda.staging import Upload
from gpu_windows.kernels.lazy_array import Pieces

#: Threads of a block.
THREADS = 256
#: Kernels stride over their items, so a launch needs no more blocks than fill a device, and it
#: costs nothing to have as many as Numba wants to see (it warns of small grids).
_MIN_BLOCKS, _MAX_BLOCKS = 128, 4096


# ---- arrays


def to_device(array: HostArray | Pieces) -> DeviceArray:
    """Return the array on the device, contiguous; one that is there is not copied."""
    return upload(array).land()


def upload(array: HostArray | Pieces) -> Upload:
    """Begin to copy an array to the device; kernels that run meanwhile do not wait for it."""
    with working() as session:
        if array.size == 0:
            return Upload(session.placeholder(array.dtype)[:0])
        begun = None if session.staging is None else session.staging.upload(array)
        if begun is not None:
            return begun
        moved = session.arrays.asarray(array.on_host if isinstance(array, Pieces) else array)
        there = moved if moved.flags.c_contiguous else session.arrays.ascontiguousarray(moved)
        return Upload(there)


def to_host(array: DeviceArray) -> HostArray:
    """Return the array as NumPy's; wait for the kernels that write it."""
    with working() as session:
        moved = None if session.staging is None else session.staging.to_host(array)
        if moved is not None:
            return moved
        return session.arrays.asnumpy(array)  # type: ignore[no-any-return]


def empty(count: int, dtype: type[np.generic]) -> DeviceArray:
    """Allocate ``count`` values of a dtype, undefined."""
    (made,) = empties((count, dtype))
    return made


def to_host_together(arrays: Sequence[DeviceArray]) -> list[HostArray]:
    """Return arrays of 8 bytes an item as NumPy's; those that are small come in one copy."""
    is_small = [0 < array.nbytes <= _SMALL_BYTES for array in arrays]
    small = [array.view(np.int64) for array, each in zip(arrays, is_small, strict=True) if each]
    if len(small) < 2:
        return [*map(to_host, arrays)]
    with working() as session:
        whole = session.arrays.concatenate(small)
    parts = iter(np.split(to_host(whole), np.cumsum([*map(len, small)])[:-1]))
    return [
        next(parts).view(array.dtype) if each else to_host(array)
        for array, each in zip(arrays, is_small, strict=True)
    ]


#: Bytes that the arrays of an allocation begin at multiples of, as CuPy's do.
_ALIGNMENT = 512
#: Arrays that take no more bytes are cut from a slab, which a thread allocates for many of them.
_SMALL_BYTES, _SLAB_BYTES = 1 << 16, 1 << 20


class _Slab(threading.local):
    """Memory of a session, of which a thread has given away the first bytes.

    It is free when nobody has any array of it. What it gives is never given again, so that no
    launch meets an earlier one in it.
    """

    session: Any = None
    memory: Any = None
    used = 0


_slab = _Slab()


def empties(*wanted: tuple[int, type[np.generic]]) -> list[Any]:
    """Allocate several arrays as one, each ``(count, dtype)``, undefined.

    Memory is free again when nobody has any of them: so they should be of one purpose. Bytes of
    nobody follow each, so that checks of accesses see one past its end.
    """
    sizes = [count * np.dtype(dtype).itemsize for count, dtype in wanted]
    begins = [0]
    for size in sizes:
        begins.append(begins[-1] + (-(-size // _ALIGNMENT) + 1) * _ALIGNMENT)
    whole, before = _memory(begins[-1])
    return [
        whole[before + begin : before + begin + size].view(dtype)
        for (_, dtype), begin, size in zip(wanted, begins, sizes, strict=False)
    ]


def _memory(size: int) -> tuple[Any, int]:
    """Return bytes, and where in them nobody has any."""
    with working() as session:
        if size > _SMALL_BYTES:
            return session.arrays.empty(size, np.uint8), 0
        if _slab.session is not session or _slab.used + size > _SLAB_BYTES:
            _slab.memory = session.arrays.empty(_SLAB_BYTES, np.uint8)
            _slab.session, _slab.used = session, 0
        before, _slab.used = _slab.used, _slab.used + size
        return _slab.memory, before


def full(count: int, value: int) -> Any:
    """Return int64[count], each one ``value``."""
    with working() as session:
        return session.arrays.full(count, value, np.int64)


def gather(values: Any, index: Any) -> Any:
    """Return ``values[index]``, index being int64[n] within bounds."""
    if len(index) == 0:
        return empty(0, values.dtype)
    with working() as session:
        return session.arrays.take(values, index)


def argsort(keys: Any) -> Any:
    """Return int64[n] that sorts int64 or int32 keys; equal keys stay in their order."""
    with working() as session:
        return session.arrays.argsort(keys, kind="stable")


def where(flags: Any) -> Any:
    """Return the places of the true flags, or of integers but 0: int64, ascending."""
    with working() as session:
        return session.arrays.flatnonzero(flags)


def running_sum(values: Any) -> Any:
    """Return the sum of int64[n] up to each, modulo 2**64."""
    with working() as session:
        return session.arrays.cumsum(values)


def exclusive_scan(counts: Any) -> tuple[Any, int]:
    """Return the sum of all counts before each, int64[n], and the sum of all."""
    with working() as session:
        if len(counts) == 0:
            return counts, 0
        ends = session.arrays.cumsum(counts)
        return ends - counts, int(ends[-1])


def cache_bytes() -> int:
    """Return how many bytes of device memory its cache holds."""
    with working() as session:
        return session.cache_bytes


# ---- kernels


def block_count(count: int) -> int:
    """Return how many blocks a launch over ``count`` items has."""
    return min(max(-(-count // THREADS), _MIN_BLOCKS), _MAX_BLOCKS)


def launch(compiled: Any, count: int, arguments: Sequence[Any]) -> None:
    """Run a kernel that strides over ``count`` items, on the session's stream; do not wait.

    An array without elements is replaced by one of one element: a null pointer is no argument.
    A kernel must not look at it.
    """
    with working() as session:
        compiled(session, block_count(count), THREADS, arguments)
