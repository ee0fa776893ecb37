"""The two back ends, and the choice between them, made where the work is done.

A process whose tasks may use no device imports no package of CUDA. One that Spark uses again runs
one task after the other, and each may be granted another device. So nothing of this is kept in the
environment: CUDA reads ``CUDA_VISIBLE_DEVICES`` once, when it starts, and numbers the devices in it
from 0 on.
"""

from __future__ import annotations

import importlib
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Self

import numpy as np

from gpu_windows.errors import DeviceUnavailableError
from gpu_windows.kernels.contract.arrays import DeviceArray, DeviceInts, HostArray
from gpu_windows.kernels.contract.groups import Groups
from gpu_windows.kernels.contract.modules import Modules

logger = logging.getLogger(__name__)

#: The environment variable with which CUDA is told which devices it may see.
VISIBLE_VARIABLE = "CUDA_VISIBLE_DEVICES"

#: Why a process with an empty one uses no device.
NONE_VISIBLE = f"{VISIBLE_VARIABLE} is empty: this task was given no device"


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
    missing = _use_device(current_task(), forced=device == "cuda")
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


def _use_device(running: Task, *, forced: bool) -> str | None:
    """Make the task's device the one that kernels run on; return why not if that cannot be."""
    missing = device_failure() or running.why_no_device(os.environ, forced=forced) or why_no_cuda()
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
    if visible_devices(os.environ) == ():
        return NONE_VISIBLE
    if os.environ.get("NUMBA_ENABLE_CUDASIM", "0") != "0":
        return "NUMBA_ENABLE_CUDASIM is set, with which Numba compiles for no device: unset it"
    try:
        session = importlib.import_module("gpu_windows.kernels.cuda.session")
    except ImportError as error:
        return f"a CUDA package is missing ({error}); install gpu-windows[cu13] or [cu12]"
    return session.why_not()  # type: ignore[no-any-return]


# ---- the task that this process runs: which GPUs it was granted, and how much of one


@dataclass(frozen=True)
class Grant:
    """Devices that a scheduler granted to a task.

    Parameters
    ----------
    addresses : tuple of str
        GPUs, as the scheduler names them: CUDA's numbers or UUIDs. Empty: it granted none.
    share : float
        Of a device, in (0, 1]: how much of its memory is the task's.
    number : int
        Number of the task. One that was granted no GPU, but must use one, takes the visible device
        of this number, modulo how many there are.
    """

    addresses: tuple[str, ...]
    share: float = 1.0
    number: int = 0


class Task:
    """A task, and what it has learned of its device.

    Parameters
    ----------
    grant : Grant, optional
        Default: nobody grants devices here, so all that are visible are the process's own.

    Attributes
    ----------
    grant : Grant or None
    fallbacks : int
        Calls so far that the device had no room for.
    """

    def __init__(self, grant: Grant | None = None) -> None:
        self.grant = grant
        self.fallbacks = 0

    @property
    def share(self) -> float:
        """How much of a device's memory is the task's, in (0, 1]."""
        return 1.0 if self.grant is None else self.grant.share

    def why_no_device(self, environment: Mapping[str, str], *, forced: bool) -> str | None:
        """Return why this task may use no GPU, whatever the machine has; None if it may.

        Parameters
        ----------
        environment : mapping of str to str
            Environment variables of the task.
        forced : bool
            Whether a GPU must be used: then one that was not granted may be.
        """
        if visible_devices(environment) == ():
            return NONE_VISIBLE
        granted = self.grant is None or self.grant.addresses
        if granted or forced or visible_devices(environment) is not None:
            return None
        return "Spark granted this task no GPU (spark.task.resource.gpu.amount)"

    def ordinal(
        self, environment: Mapping[str, str], uuids: Callable[[], Sequence[str]]
    ) -> int | str:
        """Return CUDA's number of this task's device among the visible ones, or why there is none.

        Parameters
        ----------
        environment : mapping of str to str
            Environment variables of the task.
        uuids : callable
            Returns the UUID (``GPU-...``) of every visible device, in CUDA's order.
        """
        if self.grant is None:
            return 0
        devices = uuids()
        if not self.grant.addresses:
            return self.grant.number % len(devices)
        address, visible = self.grant.addresses[0], visible_devices(environment)
        names = tuple(map(str, range(len(devices)))) if visible is None else visible
        if address in names:
            return names.index(address)
        matches = [i for i, uuid in enumerate(devices) if _is_uuid(address, uuid)]
        if len(matches) == 1:
            return matches[0]
        if len(devices) == 1:  # the container shows no other
            return 0
        setting = f"{VISIBLE_VARIABLE}={environment.get(VISIBLE_VARIABLE, '(unset)')}"
        return f"Spark granted the GPU {address!r}, which is none of {len(devices)} with {setting}"


def visible_devices(environment: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the names in ``CUDA_VISIBLE_DEVICES`` that count; None if the variable is unset.

    As CUDA does, stop at the first that is no device.
    """
    text = environment.get(VISIBLE_VARIABLE)
    if text is None:
        return None
    names: list[str] = []
    for name in (part.strip() for part in text.split(",")):
        if not name.isdigit() and not name.startswith(("GPU-", "MIG-")):
            break
        names.append(name)
    return tuple(names)


def _is_uuid(address: str, uuid: str) -> bool:
    """Whether an address is this UUID, or its beginning."""
    return address.startswith("GPU-") and uuid.lower().startswith(address.lower())


class _Process:
    """State of this process: its task, and why its CUDA context failed."""

    task: Task | None = None
    failure: str | None = None


def begin(grant: Grant) -> None:
    """Begin a task in this process, with the devices granted to it; the one before has ended."""
    _Process.task = Task(grant)


def current_task() -> Task:
    """Return the task that runs in this process; a new one where nobody began any."""
    return _Process.task or Task()


def device_failed(reason: str) -> None:
    """Remember that no call of this process will reach a device again."""
    _Process.failure = reason


def device_failure() -> str | None:
    """Return why this process can no longer reach a device, or None if it can."""
    return _Process.failure
