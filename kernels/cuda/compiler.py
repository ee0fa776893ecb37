"""Numba's CUDA compiler: the one file that imports ``numba.cuda``."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

import numba.cuda
import numba.cuda.extending
import numpy as np
from llvmlite import ir
from numba import types

from gpu_windows.kernels.compile import cache_directory
from gpu_windows.kernels.sources import relocate_source

#: ``numba.cuda``; it has no types.
cuda: Any = numba.cuda

#: How functions become part of the kernels that call them: NVVM does it. If Numba did, in its own
#: representation (``inline="always"``), a large kernel would take ten times as long: one with a
#: state machine took 50 to 80 seconds to PTX instead of 6.
_INLINED: dict[str, Any] = {"forceinline": True}


def _load_arrays() -> None:
    """Load what numba-cuda knows of NumPy's functions, where it would not load by itself.

    numba-cuda 0.30 looks up `numpy.row_stack` as it loads, which NumPy 2.5 has no more. No kernel
    calls it.
    """
    if "row_stack" in vars(np):
        return

    def row_stack(rows: Any) -> Any:
        return np.vstack(rows)

    vars(np)["row_stack"] = row_stack  # not vstack itself: that is known already
    try:
        with suppress(ModuleNotFoundError):  # in another version of numba-cuda
            importlib.import_module("numba.cuda.np.arrayobj")
    finally:
        del vars(np)["row_stack"]


_load_arrays()


#: NVVM's address spaces.
_GLOBAL, _SHARED = 1, 3


def device_function(function: Callable[..., Any]) -> Any:
    """Compile a function that kernels call; it is inlined into them."""
    return cuda.jit(function, device=True, **_INLINED)


@numba.cuda.extending.intrinsic
def load_relaxed(typing: Any, array: Any, index: Any) -> Any:
    """Return ``array[index]`` of int64, as atomics see it: a read that may meet one.

    A plain read and an atomic of two threads, which nothing orders, are a race, of which CUDA says
    nothing; and what the plain one reads may be an old value for as long as a cache has it.
    """
    del typing, index
    return array.dtype(array, types.int64), _relaxed_load("gpu.global", _GLOBAL, 64, "=l,l")


@numba.cuda.extending.intrinsic
def load_shared(typing: Any, array: Any, index: Any) -> Any:
    """Return ``array[index]`` of int32 in shared memory, as atomics see it (`load_relaxed`)."""
    del typing, index
    return array.dtype(array, types.int64), _relaxed_load("cta.shared", _SHARED, 32, "=r,l")


def _relaxed_load(where: str, space: int, bits: int, registers: str) -> Callable[..., Any]:
    """Return what generates a relaxed load of an item of an array.

    Parameters
    ----------
    where : str
        Scope and memory, as PTX names them.
    space, bits : int
        The memory, as NVVM numbers it; of an item.
    registers : str
        Constraints of LLVM for the value and its address.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind, _ = signature.args
        values, place = arguments
        item = builder.gep(context.make_array(kind)(context, builder, values).data, [place])
        own = builder.addrspacecast(item, ir.PointerType(ir.IntType(bits), addrspace=space))
        form = ir.FunctionType(ir.IntType(bits), [own.type])
        text = f"ld.relaxed.{where}.b{bits} $0, [$1];"
        return builder.call(ir.InlineAsm(form, text, registers, side_effect=True), [own])

    return generate


def compile_kernel(function: Callable[..., Any], signatures: Sequence[Any]) -> Any:
    """Compile a kernel for the current device, or load it from the cache on disk.

    Within `gpu_windows.kernels.compile.compiling_alone`. Without link-time optimisation: what runs
    is the PTX that the tests compile.
    """
    function = relocate_source(function, cache_directory())
    return cuda.jit(list(signatures), cache=True, lto=False)(function)


def cache_target() -> str | None:
    """Return for what device and by what kernels are compiled; None: they are not cached.

    As Numba's cache tells entries of a kernel apart, and as a part of a file name.
    """
    dispatcher: Any = importlib.import_module("numba.cuda.dispatcher")
    runtime: Any = importlib.import_module("numba.cuda.cudadrv.runtime")
    major, minor = dispatcher.get_current_device().compute_capability
    toolkit = ".".join(map(str, runtime.get_version()))
    return f"sm_{major}{minor}-cuda-{toolkit}-numba-{version('numba-cuda')}"


def ptx(function: Callable[..., Any], signature: Any, capability: tuple[int, int]) -> str:
    """Compile a kernel to PTX for a compute capability; needs neither device nor driver.

    For what a device of that capability has alone, as Numba does there (`suffix`).
    """
    with compiling_for(capability):
        code, _ = cuda.compile_ptx(function, signature, cc=(*capability, suffix(capability)))
    return str(code)


def suffix(capability: tuple[int, int]) -> str:
    """Return what Numba adds to the name of a device's architecture: ``"a"`` from sm_90 on."""
    return "a" if capability >= (9, 0) else ""


@contextmanager
def compiling_for(capability: tuple[int, int]) -> Iterator[None]:
    """Answer Numba when it asks the driver for what device the functions of a kernel are.

    `cuda.compile_ptx` hands the capability on to the kernel only. A function is lowered once, for
    the first capability; NVVM then makes PTX of all of it for the one that was asked for.
    """
    dispatcher: Any = importlib.import_module("numba.cuda.dispatcher")
    ask = dispatcher.get_current_device
    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=capability)
    try:
        yield
    finally:
        dispatcher.get_current_device = ask
