"""What the CUDA back end takes from libraries: the one file that imports numba.cuda and CuPy.

Every call names the device, the stream and the memory pool that it works with: those of the
task's `_Session`. Arrays are one-dimensional and contiguous, on the device. Under Numba's
simulator (``NUMBA_ENABLE_CUDASIM=1``, read when Numba is imported) NumPy stands in for CuPy.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import numba.cuda
import numpy as np
from numba.core import config
from numpy.typing import NDArray

from gpu_windows.errors import DeviceMemoryError
from gpu_windows.kernels.compile import cached_on_disk

__all__ = [
    "argsort",
    "compile_kernel",
    "cuda",
    "device_function",
    "device_index",
    "empty",
    "exclusive_scan",
    "extremes",
    "fetch",
    "gather",
    "launch",
    "memory_limit",
    "place",
    "prefer_device",
    "ptx",
    "to_device",
    "to_host",
    "where",
    "why_not",
]

#: A named tuple.
T = TypeVar("T", bound=tuple[Any, ...])

#: ``numba.cuda``; it has no types.
cuda: Any = numba.cuda

#: Whether Numba simulates CUDA in this process.
SIMULATED = bool(config.ENABLE_CUDASIM)

#: Environment variable: bytes of device memory that this process may hold.
MEMORY_VARIABLE = "GPU_WINDOWS_DEVICE_MEMORY"
#: Share of the device's memory that a process may hold where nothing else is said.
_MEMORY_SHARE = 0.25

#: The oldest device that CUDA 13 compiles for.
_OLDEST_CAPABILITY = 75

#: What the driver and the runtime call it; CuPy and RMM raise a MemoryError.
_OUT_OF_MEMORY = ("CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation")

_THREADS = 256
#: Kernels stride over their items, so a launch needs no more blocks than fill a device, and it
#: costs nothing to have as many as Numba wants to see (it warns of small grids).
_LEAST_BLOCKS, _MOST_BLOCKS = 128, 4096


# ---- may this process use a device, and which


def why_not() -> str | None:
    """Return why kernels cannot run on a CUDA device here, or None if they can.

    Asks the driver, but makes no CUDA context.
    """
    if SIMULATED:
        return None
    if os.environ.get("CUDA_VISIBLE_DEVICES") == "":
        return "CUDA_VISIBLE_DEVICES is empty: this task was given no device"
    if not _has_driver():
        return "there is no NVIDIA driver (libcuda.so.1) on this machine"
    for package in ("numba_cuda", "cupy"):
        if importlib.util.find_spec(package) is None:
            return f"the package {package} is missing; install gpu-windows[cu13] or [cu12]"
    try:
        return _why_not_this_device()
    except (ImportError, OSError, RuntimeError) as error:  # CUDA's errors are RuntimeErrors
        return f"CUDA cannot be used: {error}"


def _has_driver() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def _why_not_this_device() -> str | None:
    from cupy.cuda import Device, runtime
    from numba.cuda.cudadrv.runtime import get_version

    if runtime.getDeviceCount() == 0:
        return "there is no CUDA device"
    driver, (major, minor) = runtime.driverGetVersion(), get_version()
    if driver // 1000 < major:
        have = f"{driver // 1000}.{driver % 1000 // 10}"
        return f"the driver is for CUDA {have}, but numba-cuda compiles with CUDA {major}.{minor}"
    capability = int(Device(device_index()).compute_capability)
    if capability < _OLDEST_CAPABILITY:
        return f"the device has compute capability {capability / 10}, less than 7.5"
    return None if cuda.is_available() else f"numba-cuda finds no driver: {cuda.cuda_error()}"


class _Task:
    """What this process was told about the task that it runs."""

    device = 0


def prefer_device(number: int) -> None:
    """Say which device to use, before the first kernel of a task: ``number`` modulo their count.

    Without effect where ``CUDA_VISIBLE_DEVICES`` is set: then it is the first visible one.
    """
    _Task.device = number


def device_index() -> int:
    """Return the number of this task's device among the visible ones."""
    if SIMULATED or os.environ.get("CUDA_VISIBLE_DEVICES"):
        return 0
    from cupy.cuda import runtime

    return int(_Task.device % runtime.getDeviceCount())


# ---- the session: device, stream, memory pool


@dataclass(frozen=True)
class _Session:
    """What all calls of a process share.

    Parameters
    ----------
    arrays : module
        CuPy, or NumPy under the simulator.
    device, stream : context manager
        They become current while a call lasts. The stream waits for the default stream and the
        other way round, so that a caller may index an array without knowing of it.
    pool : callable
        Returns the context manager in which arrays come from this session's memory.
    numba_stream : object
        The same stream, for Numba.
    placeholders : dict
        One-element arrays by dtype, for arguments that have no element.
    """

    arrays: Any
    device: AbstractContextManager[Any]
    stream: AbstractContextManager[Any]
    pool: Callable[[], AbstractContextManager[Any]]
    numba_stream: Any
    placeholders: dict[str, Any]


@contextmanager
def _working() -> Iterator[_Session]:
    """Enter the session of this task's device.

    Raises
    ------
    DeviceMemoryError
        If the device, or what this process may hold of it, has not enough memory.
    """
    try:
        session = _session(device_index())
        with session.device, session.stream, session.pool():
            yield session
    except Exception as error:
        if isinstance(error, MemoryError) or any(name in str(error) for name in _OUT_OF_MEMORY):
            raise DeviceMemoryError(f"a batch must fit into device memory: {error}") from error
        raise


@cache
def _session(index: int) -> _Session:
    if SIMULATED:
        return _Session(np, nullcontext(), nullcontext(), nullcontext, 0, {})
    import cupy

    device = cupy.cuda.Device(index)
    device.use()
    stream = cupy.cuda.Stream(non_blocking=False)
    allocate = _allocator(cupy)
    with device:
        numba_stream = cuda.external_stream(stream.ptr)

    def pool() -> AbstractContextManager[Any]:
        return cupy.cuda.using_allocator(allocate)  # type: ignore[no-any-return]

    return _Session(cupy, device, stream, pool, numba_stream, {})


def _allocator(cupy: Any) -> Callable[[int], Any]:
    """Return where CuPy's memory comes from: RAPIDS' pool if it made one, else a capped one."""
    pooled = os.environ.get("RAPIDS_POOLED_MEM_ENABLED", "false").lower() == "true"
    if pooled and importlib.util.find_spec("rmm") is not None:
        from rmm.allocators.cupy import rmm_cupy_allocator

        return rmm_cupy_allocator  # type: ignore[no-any-return]
    pool = cupy.cuda.MemoryPool()
    _, total = cupy.cuda.runtime.memGetInfo()
    pool.set_limit(size=memory_limit(os.environ, total))
    return pool.malloc  # type: ignore[no-any-return]


def memory_limit(environment: Mapping[str, str], total: int) -> int:
    """Return how many bytes of a device's ``total`` this process may hold.

    The first of ``GPU_WINDOWS_DEVICE_MEMORY``, what RAPIDS grants a Python worker
    (``RAPIDS_POOLED_MEM_MAX_SIZE``, ``RAPIDS_POOLED_MEM_SIZE``; 0 is no limit) and a quarter of
    the device.
    """
    names = (MEMORY_VARIABLE, "RAPIDS_POOLED_MEM_MAX_SIZE", "RAPIDS_POOLED_MEM_SIZE")
    for name in names:
        text = environment.get(name, "")
        if text.isdigit() and int(text) > 0:
            return min(int(text), total)
    return int(total * _MEMORY_SHARE)


# ---- arrays


def to_device(array: NDArray[Any]) -> Any:
    """Copy a NumPy array to the device; an array that is there already is returned as it is."""
    with _working() as session:
        if SIMULATED:
            return np.array(array)  # the simulator writes arguments back: a view may be read-only
        return session.arrays.ascontiguousarray(session.arrays.asarray(array))


def to_host(array: Any) -> NDArray[Any]:
    """Copy an array of the device to NumPy; waits for the kernels that write it."""
    with _working() as session:
        if SIMULATED:
            return np.asarray(array)
        return session.arrays.asnumpy(array)  # type: ignore[no-any-return]


def place(record: T) -> T:
    """Copy the arrays of a named tuple to the device."""
    return type(record)(*map(to_device, record))


def fetch(record: T) -> T:
    """Copy the arrays of a named tuple to NumPy."""
    return type(record)(*map(to_host, record))


def empty(count: int, dtype: Any) -> Any:
    """Allocate ``count`` values of a dtype, undefined."""
    with _working() as session:
        return session.arrays.empty(count, dtype)


def gather(values: Any, index: Any) -> Any:
    """Return ``values[index]``, index being int64[n] within bounds."""
    if len(index) == 0:
        return empty(0, values.dtype)
    with _working() as session:
        return session.arrays.take(values, index)


def argsort(keys: Any) -> Any:
    """Return int64[n] that sorts int64 or int32 keys; equal keys stay in their order."""
    with _working() as session:
        return session.arrays.argsort(keys, kind="stable")


def where(flags: Any) -> Any:
    """Return the places of the true flags, int64, ascending."""
    with _working() as session:
        return session.arrays.flatnonzero(flags)


def exclusive_scan(counts: Any) -> tuple[Any, int]:
    """Return the sum of all counts before each, int64[n], and the sum of all."""
    with _working() as session:
        if len(counts) == 0:
            return counts, 0
        ends = session.arrays.cumsum(counts)
        return ends - counts, int(ends[-1])


def extremes(values: Any) -> tuple[int, int]:
    """Return the least and the greatest of some (at least one) integers."""
    with _working() as session:
        both = session.arrays.stack([values.min(), values.max()])
        low, high = to_host(both).tolist()
        return low, high


# ---- kernels


def device_function(function: Callable[..., Any]) -> Any:
    """Compile a function that kernels call; it is inlined into them."""
    return cuda.jit(function, device=True, inline="always")


def compile_kernel(function: Callable[..., Any], signatures: Sequence[Any]) -> Any:
    """Compile a kernel for the current device, or load it from the cache on disk.

    Without link-time optimisation: what runs is the PTX that the tests compile.
    """
    if SIMULATED:
        return cuda.jit(list(signatures))(function)
    with _working(), cached_on_disk():
        return cuda.jit(list(signatures), cache=True, lto=False)(function)


def ptx(function: Callable[..., Any], signature: Any, capability: tuple[int, int]) -> str:
    """Compile a kernel to PTX for a compute capability; needs neither device nor driver."""
    code, _ = cuda.compile_ptx(function, signature, cc=capability)
    return str(code)


def launch(compiled: Any, count: int, arguments: Sequence[Any]) -> None:
    """Run a kernel that strides over ``count`` items, on the session's stream; do not wait.

    An array without elements is replaced by one of one element: a null pointer is no argument.
    A kernel must not look at it.
    """
    with _working() as session:
        values = [_argument(session, argument) for argument in arguments]
        if SIMULATED:
            _simulate(compiled, values)
        else:
            blocks = min(max(-(-count // _THREADS), _LEAST_BLOCKS), _MOST_BLOCKS)
            compiled[blocks, _THREADS, session.numba_stream](*values)


def _simulate(compiled: Any, values: list[Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's: an integer wraps around
        compiled[2, 2](*values)  # a Python thread each: few, but enough to stride


def _argument(session: _Session, argument: Any) -> Any:
    if isinstance(argument, tuple) and hasattr(argument, "_fields"):
        return type(argument)(*(_argument(session, part) for part in argument))
    if not hasattr(argument, "dtype") or np.isscalar(argument):
        return argument
    if argument.size == 0:
        name = argument.dtype.name
        if name not in session.placeholders:
            session.placeholders[name] = session.arrays.zeros(1, argument.dtype)
        argument = session.placeholders[name]
    if SIMULATED:
        return argument
    if not hasattr(argument, "__cuda_array_interface__"):
        raise TypeError(f"a kernel takes arrays of the device, got {type(argument).__name__}")
    return cuda.as_cuda_array(argument, sync=False)  # same stream: nothing to wait for
