"""The two back ends, and the choice between them, made where the work is done.

A process whose tasks may use no device imports no package of CUDA.
"""

from __future__ import annotations

import importlib
import logging
import os
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Self

import numpy as np

from gpu_windows.errors import DeviceUnavailableError
from gpu_windows.kernels import task
from gpu_windows.kernels.contract.arrays import DeviceArray, DeviceInts, HostArray
from gpu_windows.kernels.contract.groups import Groups
from gpu_windows.kernels.contract.modules import Modules

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Backend(Modules[Groups]):
    """The kernels of a back end, and the memory in which they work: here the host's.

    Both keep `gpu_windows.kernels.contract`; whoever calls them need not know which they are.

    Parameters
    ----------
    name : {"cpu", "cuda"}
        What runs the kernels.
    reason : str
        Why this one was chosen.
    moved : dict, optional
        What was moved, by the identity of what it was on the host; nothing is remembered without.
    pending : list, optional
        What is delivered and was not looked at.
    """

    name: str
    reason: str
    #: The arrays of the host are in it, too, and so keep their identity.
    moved: dict[int, tuple[HostArray, DeviceArray]] | None = field(default=None, compare=False)
    pending: list[Any] | None = field(default=None, compare=False)

    def remembering(self) -> Self:
        """Return a back end that moves an array that it is given again only once.

        It holds all that it moved: take one for each call of an operator. Nobody may change an
        array that was moved, on either side.
        """
        return replace(self, moved={}, pending=[])

    def to_device(self, array: HostArray) -> DeviceArray:
        """Return the array where the kernels run, contiguous; one that is there is not copied."""
        if self.moved is None:
            return self._move(array)
        if id(array) not in self.moved:
            self.moved[id(array)] = array, self._move(array)
        return self.moved[id(array)][1]

    def _move(self, array: HostArray) -> DeviceArray:
        return np.ascontiguousarray(array)

    def to_host(self, array: DeviceArray) -> HostArray:
        """Return the array as NumPy's; waits for the kernels that write it."""
        return array  # type: ignore[no-any-return]

    def keep(self, array: DeviceArray) -> HostArray:
        """Return a result that kernels may take again, where it is until somebody looks at it.

        On CUDA it is no array of NumPy's, but behaves like one, read only: the first look copies
        it. `to_device` finds it where it is, `numpy.concatenate` of such arrays is one.
        """
        return array  # type: ignore[no-any-return]

    def deliver(self, array: DeviceArray) -> HostArray:
        """Return a result for the host, which is there when somebody looks at it.

        The first look at one brings all that were delivered by the same `remembering` back end, in
        one copy if they are small: so a call that delivers all its results before it looks waits
        once.
        """
        return array  # type: ignore[no-any-return]

    def borrow(self, array: DeviceArray) -> HostArray:
        """Return an array of somebody else's as `keep` does; `release` leaves it where it is.

        Nobody may change it, and its memory is not ours to give back. It is copied to where the
        back end's arrays are, if it is elsewhere.
        """
        return array  # type: ignore[no-any-return]

    def upload(self, array: HostArray) -> HostArray:
        """Return an array as `keep` does, which `to_device` finds; the host keeps its own.

        On CUDA the host does not wait for it. What is looked at is the array of the host, which
        nobody may change, and `release` drops the copy.
        """
        return np.asarray(array)

    def release(self) -> bool:
        """Move all that is kept to the host, to make room; return whether there was any.

        What was uploaded is there already.
        """
        return False

    def take(self, values: DeviceArray, index: DeviceInts) -> DeviceArray:
        """Return ``values[index]``, int64[n] within bounds."""
        return values[index]

    def empty(self, count: int, dtype: type[np.generic]) -> DeviceArray:
        """Allocate ``count`` values of a dtype, undefined."""
        return np.empty(count, dtype)


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
        return _load("cpu", "asked for")
    missing = _use_device(task.current(), forced=device == "cuda")
    if missing is not None and device == "cuda":
        raise DeviceUnavailableError(f"device='cuda' needs a usable CUDA device: {missing}")
    if missing is not None:
        return _load("cpu", missing)
    reason = "asked for" if device == "cuda" else "this task has a usable CUDA device"
    return _load("cuda", reason)


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
    return _load("cpu", missing)


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
def _load(name: str, reason: str) -> Backend:
    logger.info("kernels run on %s: %s", name, reason)
    package: Any = importlib.import_module(f"gpu_windows.kernels.{name}.modules")
    found: Backend = package.BACKEND(**vars(package.MODULES), name=name, reason=reason)
    return found


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
