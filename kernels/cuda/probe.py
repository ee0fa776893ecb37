"""Tries a device with a small call before a task relies on it."""

from __future__ import annotations

import numpy as np

from gpu_windows.errors import DeviceMemoryError
from gpu_windows.kernels.compile import run_first_alone
from gpu_windows.kernels.cuda import keys, primitives, session

#: Rows of the call: more than one block of threads, and keys that meet in every block.
_ROWS, _KEYS = 1 << 13, 7

#: Why a device of this process is not used, by CUDA's number of it; None: it answered rightly.
_answers: dict[int, str | None] = {}


def why_not() -> str | None:
    """Return why kernels do not run on the task's device, though it is there; None if they do.

    Runs kernels of ours, a sort and a gather of CuPy's, and compares what they give. Once a process
    and device, unless memory ran out. Until one process has done so the others wait, so that what
    CuPy compiles for it is in its cache for them; a device that hangs holds up none but its own.
    """
    ordinal = session.chosen_device()
    if ordinal not in _answers:
        try:
            with run_first_alone("probe", f"{session.uuids()[ordinal]}-{session.cupy_version()}"):
                _check_answers()
            _answers[ordinal] = None
        except DeviceMemoryError as error:
            return f"device {ordinal} has no memory for a first call: {error}"
        except Exception as error:  # noqa: BLE001 - whatever fails, the CPU can do the work
            _answers[ordinal] = f"a first call on device {ordinal} failed: {_describe(error)}"
    return _answers[ordinal]


def _check_answers() -> None:
    """Raise `ArithmeticError` if kernels give anything wrong."""
    rows = np.arange(_ROWS, dtype=np.int64)
    counts = primitives.to_device(np.zeros(_KEYS, np.int64))
    numbers, after = keys.number(primitives.to_device(rows % _KEYS), counts)
    right = np.array_equal(primitives.to_host(numbers), rows // _KEYS)
    if not right or not np.array_equal(primitives.to_host(after), np.bincount(rows % _KEYS)):
        raise ArithmeticError("it gave wrong numbers of rows")


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}"
