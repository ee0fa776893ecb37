"""The two back ends, and the choice between them, made where the work is done.

A process whose tasks may use no device imports no package of CUDA.
"""

from __future__ import annotations

import importlib
import logging
import os
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Self

import numpy as np

from gpu_windows.errors import DeviceUnavailableError
from gpu_windows.kernels import task
from gpu_windows.kernels.contract.arrays import DeviceArray, HostArray
from gpu_windows.kernels.contract.groups import Groups
from gpu_windows.kernels.contract.modules import Memory, Modules

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Backend(Modules[Groups]):
    """The kernels of `gpu_windows.kernels.cpu` or `gpu_windows.kernels.cuda`.

    Both keep `gpu_windows.kernels.contract`; whoever calls them need not know which they are.

    Parameters
    ----------
    name : {"cpu", "cuda"}
        What runs the kernels.
    reason : str
        Why this one was chosen.
    """

    name: str
    reason: str

    def to_device(self, array: HostArray) -> DeviceArray:
        """Move a NumPy array to where the kernels run."""
        return self.memory.to_device(array)

    def remembering(self) -> Self:
        """Return a back end that moves an array that it is given again only once.

        It holds all that it moved: take one for each call of an operator. Nobody may change an
        array that was moved, on either side.
        """
        return replace(self, memory=_Remembering(self.memory))

    def to_host(self, array: DeviceArray) -> HostArray:
        """Move a kernel's result to NumPy."""
        return self.memory.to_host(array)

    def keep(self, array: DeviceArray) -> HostArray:
        """Return a kernel's result as NumPy's, or as what becomes so when it is looked at."""
        return self.memory.keep(array)

    def deliver(self, array: DeviceArray) -> HostArray:
        """Return a result of a call; the first look at one brings all of them to the host."""
        return self.memory.deliver(array)

    def upload(self, array: HostArray) -> HostArray:
        """Return an array of the host as what `to_device` finds where the kernels run."""
        return self.memory.upload(array)

    def borrow(self, array: DeviceArray) -> HostArray:
        """Return an array of somebody else's as `keep` does."""
        return self.memory.borrow(array)

    def take(self, values: DeviceArray, index: DeviceArray) -> DeviceArray:
        """Return some values, by position."""
        return self.memory.take(values, index)

    def empty(self, count: int, dtype: type[np.generic]) -> DeviceArray:
        """Allocate an output of a kernel."""
        return self.memory.empty(count, dtype)


class _Remembering:
    """Memory of a back end, for a while."""

    def __init__(self, memory: Memory) -> None:
        self.to_host, self.keep, self.release = memory.to_host, memory.keep, memory.release
        self.take, self.empty, self.borrow = memory.take, memory.empty, memory.borrow
        self.upload = memory.upload
        self._move, self._deliver = memory.to_device, memory.deliver
        self._pending: list[Any] = []
        self._moved: dict[int, tuple[HostArray, DeviceArray]] = {}  # the former keep their id

    def deliver(self, array: DeviceArray, pending: list[Any] | None = None) -> HostArray:
        """See `contract.modules.Memory.deliver`."""
        return self._deliver(array, self._pending if pending is None else pending)

    def to_device(self, array: HostArray) -> DeviceArray:
        """See `contract.modules.Memory.to_device`."""
        if id(array) not in self._moved:
            self._moved[id(array)] = array, self._move(array)
        return self._moved[id(array)][1]


def select(device: str = "auto") -> Backend:
    """Choose a back end for the task that runs in this process; log which and why.

    Parameters
    ----------
    device : {"auto", "cpu", "cuda"}
        ``"auto"``: CUDA where there is a usable device and nobody else's: Spark granted it to the
        task, or ``CUDA_VISIBLE_DEVICES`` names some for the process, or no Spark task runs here.
        ``"cuda"``: a device must be used, granted or not.

    Raises
    ------
    DeviceUnavailableError
        If "cuda" is asked for where no CUDA device or package can be used.
    """
    if device == "cpu":
        return _load("cpu", "cpu", "asked for")
    missing = _use_device(task.current(), forced=device == "cuda")
    if missing is not None and device == "cuda":
        raise DeviceUnavailableError(f"device='cuda' needs a usable CUDA device: {missing}")
    if missing is not None:
        return _load("cpu", "cpu", missing)
    return _load(
        "cuda", "cuda", "asked for" if device == "cuda" else "this task has a usable CUDA device"
    )


def probe(backend: Backend) -> Backend:
    """Return a back end that was chosen by itself, or the CPU's where a first call on it fails.

    Makes a CUDA context, so it is for who is about to use the device.

    Parameters
    ----------
    backend : Backend
        What `select` chose for ``"auto"``.
    """
    if backend.name != "cuda":
        return backend
    missing: str | None = importlib.import_module("gpu_windows.kernels.cuda.probe").why_not()
    if missing is None:
        return backend
    logger.warning("kernels run on the CPU: %s", missing)
    return _load("cpu", "cpu", missing)


def _use_device(running: task.Task, *, forced: bool) -> str | None:
    """Make the task's device the one that kernels run on; return why not if that cannot be."""
    missing = (
        task.device_failure() or running.why_no_device(os.environ, forced=forced) or why_no_cuda()
    )
    if missing is not None:
        return missing
    session: Any = importlib.import_module("gpu_windows.kernels.cuda.session")
    ordinal = running.ordinal(os.environ, session.uuids)
    if isinstance(ordinal, str):
        return ordinal
    why_not: str | None = session.why_not_device(ordinal)
    if why_not is None:
        session.use_device(ordinal, running.share)
    return why_not


@cache
def _load(name: str, package: str, reason: str) -> Backend:
    logger.info("kernels run on %s: %s", name, reason)
    modules = importlib.import_module(f"gpu_windows.kernels.{package}.modules").MODULES
    return Backend(**vars(modules), name=name, reason=reason)


@cache
def why_no_cuda() -> str | None:
    """Return why CUDA kernels cannot run in this process, or None if they can.

    Makes no CUDA context.
    """
    if task.visible_devices(os.environ) == ():
        return task.NONE_VISIBLE
    if os.environ.get("NUMBA_ENABLE_CUDASIM", "0") != "0":
        return "NUMBA_ENABLE_CUDASIM is set, with which Numba compiles for no device: unset it"
    try:
        session = importlib.import_module("gpu_windows.kernels.cuda.session")
    except ImportError as error:
        return f"a CUDA package is missing ({error}); install gpu-windows[cu13] or [cu12]"
    return session.why_not()  # type: ignore[no-any-return]
