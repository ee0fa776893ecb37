"""The session of a device: its stream, its memory pool, and what its errors mean.

With `gpu_windows.kernels.cuda.compiler` the one place that knows which library does what.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from gpu_windows.errors import DeviceFailedError, DeviceMemoryError
from gpu_windows.kernels.backend import device_failed
from gpu_windows.kernels.cuda.compiler import cuda
from gpu_windows.kernels.cuda.library import load_cupy, why_too_old
from gpu_windows.kernels.cuda.staging import Staging

#: Environment variable: bytes of device memory that this process may hold.
MEMORY_VARIABLE = "GPU_WINDOWS_DEVICE_MEMORY"
#: Of a task's share of the device, so much is for arrays: the driver and others need some, too.
_USABLE_SHARE = 0.9
#: About what a CUDA context and the kernels loaded into it take of a device; no pool counts it.
CONTEXT_BYTES = 512 << 20

#: The oldest device that CUDA 13 compiles for.
_OLDEST_CAPABILITY = 75

#: What the driver and the runtime call it; CuPy and RMM raise a MemoryError.
_OUT_OF_MEMORY = ("CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation")

#: Errors after which every further call of the process fails: its context is broken for good.
LASTING = (
    "CUDA_ERROR_ASSERT",
    "CUDA_ERROR_CONTEXT_IS_DESTROYED",
    "CUDA_ERROR_CONTAINED",
    "CUDA_ERROR_DEVICE_UNAVAILABLE",
    "CUDA_ERROR_ECC_UNCORRECTABLE",
    "CUDA_ERROR_EXTERNAL_DEVICE",
    "CUDA_ERROR_HARDWARE_STACK_ERROR",
    "CUDA_ERROR_ILLEGAL_ADDRESS",
    "CUDA_ERROR_ILLEGAL_INSTRUCTION",
    "CUDA_ERROR_INVALID_ADDRESS_SPACE",
    "CUDA_ERROR_INVALID_PC",
    "CUDA_ERROR_LAUNCH_FAILED",
    "CUDA_ERROR_LAUNCH_TIMEOUT",
    "CUDA_ERROR_MISALIGNED_ADDRESS",
    "CUDA_ERROR_UNKNOWN",
    "cudaErrorAssert",
    "cudaErrorContained",
    "cudaErrorContextIsDestroyed",
    "cudaErrorDevicesUnavailable",
    "cudaErrorECCUncorrectable",
    "cudaErrorExternalDevice",
    "cudaErrorHardwareStackError",
    "cudaErrorIllegalAddress",
    "cudaErrorIllegalInstruction",
    "cudaErrorInvalidAddressSpace",
    "cudaErrorInvalidPc",
    "cudaErrorLaunchFailure",
    "cudaErrorLaunchTimeout",
    "cudaErrorMisalignedAddress",
    "cudaErrorUnknown",
)


# ---- may this process use a device


def why_not() -> str | None:
    """Return why kernels cannot run on any CUDA device here, or None if they can.

    Asks the driver, but makes no CUDA context.
    """
    if not _has_driver():
        return "there is no NVIDIA driver (libcuda.so.1) on this machine"
    for package in ("numba_cuda", "cupy"):
        if importlib.util.find_spec(package) is None:
            return f"the package {package} is missing; install gpu-windows[cu13] or [cu12]"
    try:
        return _why_no_cuda()
    except (ImportError, OSError, RuntimeError) as error:  # CUDA's errors are RuntimeErrors
        return f"CUDA cannot be used: {error}"


def _has_driver() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def _why_no_cuda() -> str | None:
    cupy = load_cupy()
    too_old = why_too_old(cupy.__version__)
    if too_old is not None:
        return too_old
    from numba.cuda.cudadrv.runtime import get_version

    runtime = cupy.cuda.runtime
    if runtime.getDeviceCount() == 0:
        return "there is no CUDA device"
    driver, (major, minor) = runtime.driverGetVersion(), get_version()
    if driver // 1000 < major:
        have = f"{driver // 1000}.{driver % 1000 // 10}"
        return f"the driver is for CUDA {have}, but numba-cuda compiles with CUDA {major}.{minor}"
    return None if cuda.is_available() else f"numba-cuda finds no driver: {cuda.cuda_error()}"


def uuids() -> list[str]:
    """Return the UUID of every visible device, in CUDA's order."""
    return [str(device.uuid) for device in cuda.list_devices()]


def why_not_device(ordinal: int) -> str | None:
    """Return why kernels cannot run on a visible device, or None if they can."""
    capability = int(load_cupy().cuda.Device(ordinal).compute_capability)
    if capability < _OLDEST_CAPABILITY:
        return f"device {ordinal} has compute capability {capability / 10}, less than 7.5"
    return None


# ---- the session: device, stream, memory pool


class _Device:
    """Which device this process works with now, and how much of it is its own."""

    ordinal = 0
    share = 1.0


def chosen_device() -> int:
    """Return CUDA's number of the device that this process works with now."""
    return _Device.ordinal


def use_device(ordinal: int, share: float) -> None:
    """Work with a visible device from now on; one that was used before gives its memory back.

    Parameters
    ----------
    ordinal : int
        CUDA's number of it.
    share : float
        How much of its memory this process may hold, in (0, 1].
    """
    if ordinal != _Device.ordinal:
        for session in _sessions.values():
            session.release()
    _Device.ordinal, _Device.share = ordinal, share


@dataclass(frozen=True)
class Session:
    """State that all calls of a process on a device share.

    Parameters
    ----------
    arrays : module
        CuPy.
    device, stream : context manager
        CuPy's; they become current while a call lasts. The stream waits for the default stream and
        the other way round, so that a caller may index an array without knowing of it.
    pool : callable
        Returns the context manager in which arrays come from this session's memory.
    release : callable
        Gives memory that no array uses back to the device, and pinned memory back to the host.
    stream_handle : int
        The driver's handle of the stream.
    placeholders : dict
        One-element arrays by dtype, for arguments that have no element.
    ordinal : int
        CUDA's number of the device.
    staging : Staging, optional
        Moves large arrays; none where there is no device.
    cache_bytes : int
        Of the cache that all threads of the device share.
    """

    arrays: Any
    device: Any
    stream: AbstractContextManager[Any]
    pool: Callable[[], AbstractContextManager[Any]]
    release: Callable[[], None]
    stream_handle: int
    placeholders: dict[str, Any]
    ordinal: int = 0
    staging: Staging | None = None
    cache_bytes: int = 32 << 20

    def placeholder(self, dtype: Any) -> Any:
        """Return an array of one element, 0, to stand for one that has none."""
        name = dtype.name
        if name not in self.placeholders:
            self.placeholders[name] = self.arrays.zeros(1, dtype)
        return self.placeholders[name]


_sessions: dict[int, Session] = {}


@contextmanager
def working() -> Iterator[Session]:
    """Enter the session of this task's device.

    Raises
    ------
    DeviceMemoryError
        If the device, or what this process may hold of it, has not enough memory.
    DeviceFailedError
        If the device fails in a way that no later call of this process recovers from.
    """
    try:
        session = _session(_Device.ordinal, _Device.share)
        _attach(session)
        with session.device, session.stream, session.pool():
            yield session
    except Exception as error:
        text = str(error)
        if isinstance(error, MemoryError) or any(name in text for name in _OUT_OF_MEMORY):
            raise DeviceMemoryError(f"a batch must fit into device memory: {text}") from error
        if any(name in text for name in LASTING):
            device_failed(text)
            rule = "a process whose CUDA context is broken must end; another may use the device"
            raise DeviceFailedError(rule, value=text) from error
        raise


#: The device that each thread works on.
_this_thread = threading.local()


def _attach(session: Session) -> None:
    """Make this thread work on the session's device from now on.

    Entering a device of CuPy's goes back to the one before when it is left: in a new thread that is
    the first one, whichever is ours, and it would be given a context. Nor does a launch make one.
    """
    if getattr(_this_thread, "ordinal", None) != session.ordinal:
        session.device.use()
        _this_thread.ordinal = session.ordinal


#: One thread opens the session of a device, for each has a pool of its own.
_OPENING = threading.Lock()


def _session(ordinal: int, share: float) -> Session:
    if ordinal not in _sessions:
        with _OPENING:
            if ordinal not in _sessions:
                _sessions[ordinal] = _open(ordinal, share)
    return _sessions[ordinal]


def cupy_version() -> str:
    """Return the version of CuPy, whose kernels the session runs in addition to ours."""
    with working() as session:
        return str(session.arrays.__version__)


def _open(ordinal: int, share: float) -> Session:
    cupy = load_cupy()
    device = cupy.cuda.Device(ordinal)
    device.use()
    stream = cupy.cuda.Stream(non_blocking=False)
    allocate, release = _allocator(cupy, share)
    staging = Staging(cupy, stream)

    def pool() -> AbstractContextManager[Any]:
        return cupy.cuda.using_allocator(allocate)  # type: ignore[no-any-return]

    def give_back() -> None:
        with device:  # a pool of CuPy frees what it has on the current device
            staging.release()
            release()

    cache = int(cupy.cuda.runtime.getDeviceProperties(ordinal)["l2CacheSize"])
    handle = int(stream.ptr)
    return Session(cupy, device, stream, pool, give_back, handle, {}, ordinal, staging, cache)


def _allocator(cupy: Any, share: float) -> tuple[Callable[[int], Any], Callable[[], None]]:
    """Return where CuPy's memory comes from, and what gives it back.

    RAPIDS' pool if it made one, else one of our own with a limit.
    """
    pooled = os.environ.get("RAPIDS_POOLED_MEM_ENABLED", "false").lower() == "true"
    if pooled and importlib.util.find_spec("rmm") is not None:
        from rmm.allocators.cupy import rmm_cupy_allocator

        return rmm_cupy_allocator, lambda: None
    pool = cupy.cuda.MemoryPool()
    _, total = cupy.cuda.runtime.memGetInfo()
    pool.set_limit(size=memory_limit(os.environ, total, share))
    return pool.malloc, pool.free_all_blocks


def memory_limit(environment: Mapping[str, str], total: int, share: float) -> int:
    """Return how many bytes of a device's ``total`` this process may hold.

    The first of ``GPU_WINDOWS_DEVICE_MEMORY``, what RAPIDS grants a Python worker
    (``RAPIDS_POOLED_MEM_MAX_SIZE``, ``RAPIDS_POOLED_MEM_SIZE``; 0 is no limit) and nine tenths of
    the task's share of the device, less what the process's context takes: so as many tasks as
    share a device fit on it.

    Parameters
    ----------
    environment : mapping of str to str
        Environment variables.
    total : int
        Bytes of the device.
    share : float
        Of the device, in (0, 1]: what the task was granted.
    """
    names = (MEMORY_VARIABLE, "RAPIDS_POOLED_MEM_MAX_SIZE", "RAPIDS_POOLED_MEM_SIZE")
    for name in names:
        text = environment.get(name, "")
        if text.isdigit() and int(text) > 0:
            return min(int(text), total)
    granted = int(_USABLE_SHARE * total * share)
    return max(granted - CONTEXT_BYTES, granted // 2)  # half: a share so small needs some arrays
