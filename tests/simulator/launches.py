"""What every simulated launch is checked for: the simulator itself takes arguments of any type."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import types
from numba.np import numpy_support

from gpu_windows.kernels.cuda.kernel import CudaKernel


class WrongArgumentError(AssertionError):
    """A launch with arguments that the kernel is not compiled for."""


def type_of(argument: Any) -> Any:
    """Return the Numba type that an argument has on a device, where every array is writable."""
    if isinstance(argument, tuple) and hasattr(argument, "_fields"):
        return types.BaseTuple.from_types([*map(type_of, argument)], type(argument))
    if isinstance(argument, np.ndarray):
        layout = "C" if argument.flags.c_contiguous else "A"
        return types.Array(numpy_support.from_dtype(argument.dtype), argument.ndim, layout)
    return numba.typeof(argument)


def check(kernel: CudaKernel, arguments: tuple[Any, ...]) -> None:
    """Refuse arguments that are of none of the declared signatures of a kernel."""
    found = tuple(map(type_of, arguments))
    if found not in [tuple(signature) for signature in kernel.signatures]:
        declared = " or ".join(map(str, kernel.signatures))
        raise WrongArgumentError(f"{kernel.name} takes {declared}, not {found}")
