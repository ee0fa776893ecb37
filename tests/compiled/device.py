"""A device that runs compiled kernels on this CPU: installed, ``device="cuda"`` is it."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from functools import cache
from typing import Any

import numpy as np
import pytest
from numba import types

from gpu_windows.kernels import backend
from gpu_windows.kernels.cuda import primitives, session
from gpu_windows.kernels.cuda.kernel import CudaKernel
from tests.compiled.arrays import DeviceArray, PretendedCupy
from tests.compiled.grid import HostKernel
from tests.compiled.host_code import host_code

#: Fewer than a device would be given: those without an item cost time all the same.
LEAST_BLOCKS = 2


class Launches:
    """How kernels run.

    Attributes
    ----------
    backwards : bool
        Whether the threads of blocks run in the opposite order.
    counts : dict of str to int
        How often every kernel ran.
    """

    def __init__(self) -> None:
        self.backwards = False
        self.counts: dict[str, int] = {}


def install(patch: pytest.MonkeyPatch) -> Launches:
    """Put the pretended device in the place of CUDA's, until the patch is undone."""
    arrays: Any = PretendedCupy()
    opened = session.Session(
        arrays, nullcontext(), nullcontext(), nullcontext, lambda: None, None, {}
    )
    launches = Launches()

    def run(kernel: CudaKernel, count: int, *arguments: Any) -> None:
        if count == 0:
            return
        values = [primitives._argument(opened, argument) for argument in arguments]
        place = kernel.signatures.index(_signature(kernel, values))
        words = np.array([*_words(kernel.signatures[place], values)], np.int64)
        parameters = words.ctypes.data + 8 * np.arange(len(words))
        blocks = min(max(-(-count // primitives.THREADS), LEAST_BLOCKS), 4096)
        compiled(kernel.name, place, kernel).run(
            blocks, primitives.THREADS, parameters.ctypes.data, backwards=launches.backwards
        )
        launches.counts[kernel.name] = launches.counts.get(kernel.name, 0) + 1

    patch.setattr(session, "_session", lambda *_: opened)
    patch.setattr(session, "uuids", lambda: ["GPU-pretended"])
    for name in ("why_not", "why_not_device"):
        patch.setattr(session, name, lambda *_: None)
    patch.setattr(backend, "why_no_cuda", lambda: None)
    patch.setattr(CudaKernel, "__call__", run)
    patch.setattr(primitives.cuda, "as_cuda_array", lambda array, sync: array)
    return launches


@cache
def compiled(name: str, place: int, kernel: CudaKernel) -> HostKernel:
    """Return a kernel, compiled for one of its signatures."""
    del name
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return HostKernel(host_code(kernel.definition, kernel.signatures[place]))


def _signature(kernel: CudaKernel, values: list[Any]) -> Any:
    """Return the signature whose arrays have the types of these."""
    for signature in kernel.signatures:
        if all(map(_fits, signature, values)):
            return signature
    raise TypeError(f"{kernel.name} is compiled for {kernel.signatures}")


def _fits(declared: Any, value: Any) -> bool:
    if isinstance(declared, types.Array):
        name = "bool" if declared.dtype is types.bool_ else declared.dtype.name
        return isinstance(value, DeviceArray) and value.dtype.name == name
    if isinstance(declared, types.BaseTuple):
        return all(map(_fits, declared.types, value))
    return not isinstance(value, DeviceArray)


def _words(declared: Any, values: Any) -> Any:
    """Yield the 64-bit words of arguments, as a launch packs them."""
    for dtype, value in zip(declared, values, strict=True):
        if isinstance(dtype, types.BaseTuple):
            yield from _words(dtype.types, value)
        elif isinstance(value, DeviceArray):
            address, _ = value.__cuda_array_interface__["data"]
            item = value.dtype.itemsize
            yield from (0, 0, value.size, item, address, value.size, item)
        elif dtype == types.float64:
            yield np.float64(value).view(np.int64)
        else:
            yield int(value)
