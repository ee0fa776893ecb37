"""The two back ends, and the choice between them, made where the work is done."""

from __future__ import annotations

import importlib
import logging
import os
from dataclasses import dataclass, fields
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_windows.errors import DeviceUnavailableError
from gpu_windows.kernels import task

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Backend:
    """One set of kernels; both sets have the same modules, functions and signatures.

    Parameters
    ----------
    name : {"cpu", "cuda", "cuda-simulator"}
    reason : str
        Why this one was chosen.
    assign, numbering, grouping, sessions, reduce, running, combine, slots, merging, joins : module
        The kernels, of `gpu_windows.kernels.cpu` or `gpu_windows.kernels.cuda`.
    memory : module
        ``to_device(array)``, ``to_host(array)``, ``empty(count, dtype)``; the identity on CPU.
    """

    name: str
    reason: str
    assign: ModuleType
    numbering: ModuleType
    grouping: ModuleType
    sessions: ModuleType
    reduce: ModuleType
    running: ModuleType
    combine: ModuleType
    slots: ModuleType
    merging: ModuleType
    joins: ModuleType
    memory: ModuleType

    def to_device(self, array: NDArray[Any]) -> Any:
        """Move a NumPy array to where the kernels run."""
        return self.memory.to_device(array)

    def to_host(self, array: Any) -> NDArray[Any]:
        """Move a kernel's result to NumPy."""
        found: NDArray[Any] = self.memory.to_host(array)
        return found

    def empty(self, count: int, dtype: type[np.generic]) -> Any:
        """Allocate an output of a kernel."""
        return self.memory.empty(count, dtype)


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
    if device == "auto" and _is_simulated():
        return _load("cpu", "cpu", "the CUDA simulator is never chosen by itself")
    name = "cuda-simulator" if _is_simulated() else "cuda"
    return _load(
        name, "cuda", "asked for" if device == "cuda" else "this task has a usable CUDA device"
    )


def _use_device(running: task.Task, *, forced: bool) -> str | None:
    """Make the task's device the one that kernels run on; return why not if that cannot be."""
    if _is_simulated():
        return None  # there is one, whatever was granted
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


def _is_simulated() -> bool:
    return os.environ.get("NUMBA_ENABLE_CUDASIM", "0") == "1"


@cache
def _load(name: str, package: str, reason: str) -> Backend:
    logger.info("kernels run on %s: %s", name, reason)
    parts = [field.name for field in fields(Backend) if field.name not in ("name", "reason")]
    found = (importlib.import_module(f"gpu_windows.kernels.{package}.{part}") for part in parts)
    return Backend(name, reason, *found)


@cache
def why_no_cuda() -> str | None:
    """Return why CUDA kernels cannot run in this process, or None if they can.

    Makes no CUDA context.
    """
    if _is_simulated():
        return None
    if task.visible_devices(os.environ) == ():
        return task.NONE_VISIBLE
    try:
        session = importlib.import_module("gpu_windows.kernels.cuda.session")
    except ImportError as error:
        return f"a CUDA package is missing ({error}); install gpu-windows[cu13] or [cu12]"
    return session.why_not()  # type: ignore[no-any-return]
