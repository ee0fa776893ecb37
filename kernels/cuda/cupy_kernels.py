"""The kernels of CuPy's that calls of ours need: it compiles one for each function and dtype."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_windows.kernels.compile import run_first_alone
from gpu_windows.kernels.cuda.session import cupy_version, working

#: A call, given CuPy and what makes an array of zeros of a dtype.
Call = Callable[[Any, Callable[[str], Any]], Any]

#: Dtypes of the columns whose values are gathered by row number.
_GATHERED = ("int64", "float64", "int8", "int32", "bool")


def _gather(dtype: str) -> Call:
    return lambda cupy, zeros: cupy.take(zeros(dtype), zeros("int64"))


_CALLS: dict[str, Call] = {
    "full.int64": lambda cupy, _: cupy.full(2, 1, np.int64),
    **{f"take.{dtype}": _gather(dtype) for dtype in _GATHERED},
    "argsort.int64": lambda cupy, zeros: cupy.argsort(zeros("int64"), kind="stable"),
    "argsort.int16": lambda cupy, zeros: cupy.argsort(zeros("int16"), kind="stable"),
    "argsort.int8": lambda cupy, zeros: cupy.argsort(zeros("int8"), kind="stable"),
    "argsort.int32": lambda cupy, zeros: cupy.argsort(zeros("int32"), kind="stable"),
    "flatnonzero.int64": lambda cupy, zeros: cupy.flatnonzero(zeros("int64")),
    "flatnonzero.bool": lambda cupy, zeros: cupy.flatnonzero(zeros("bool")),
    "cumsum.int64": lambda cupy, zeros: cupy.cumsum(zeros("int64")),
    "subtract.int64": lambda _, zeros: zeros("int64") - zeros("int64"),
    "subtract_scalar.int64": lambda _, zeros: zeros("int64") - 1,
    "add_scalar.int64": lambda _, zeros: zeros("int64") + 1,
    "astype.int32.int64": lambda _, zeros: zeros("int32").astype(np.int64),
    "concatenate.int64": lambda cupy, zeros: cupy.concatenate([zeros("int64")] * 3),
    "concatenate.float64": lambda cupy, zeros: cupy.concatenate([zeros("float64")] * 3),
}


@dataclass(frozen=True)
class CupyKernel:
    """A kernel that CuPy compiles at the first call with some dtypes.

    Parameters
    ----------
    name : str
        Function and dtypes.
    call : callable
        Makes CuPy compile it.
    """

    name: str
    call: Call

    def compile(self) -> None:
        """Compile for the task's device, or load from CuPy's cache on disk, and wait for it."""
        with working() as session, run_first_alone(f"cupy.{self.name}", cupy_version()):
            made = self.call(session.arrays, lambda dtype: session.arrays.zeros(2, np.dtype(dtype)))
            session.arrays.asnumpy(made)


def cupy_kernels() -> Mapping[str, CupyKernel]:
    """Return every kernel of CuPy's that calls of ours need, by name."""
    return {f"cupy.{name}": CupyKernel(name, call) for name, call in _CALLS.items()}
