"""The task that this process runs: which of the machine's GPUs it was granted, and how much of one.

A process that Spark uses again runs one task after the other, and each may be granted another
device. So nothing of this is kept in the environment: CUDA reads ``CUDA_VISIBLE_DEVICES`` once,
when it starts, and numbers the devices in it from 0 on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

#: The environment variable with which CUDA is told which devices it may see.
VISIBLE_VARIABLE = "CUDA_VISIBLE_DEVICES"

#: Why a process with an empty one uses no device.
NONE_VISIBLE = f"{VISIBLE_VARIABLE} is empty: this task was given no device"


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


def current() -> Task:
    """Return the task that runs in this process; a new one where nobody began any."""
    return _Process.task or Task()


def device_failed(reason: str) -> None:
    """Remember that no call of this process will reach a device again."""
    _Process.failure = reason


def device_failure() -> str | None:
    """Return why this process can no longer reach a device, or None if it can."""
    return _Process.failure
