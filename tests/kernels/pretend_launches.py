"""Launches without a device: what the driver would be given, and what numba-cuda would give it."""

from __future__ import annotations

import ctypes
import importlib
import time
from collections.abc import Iterable
from contextlib import nullcontext
from itertools import count
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import Mock

import numpy as np
import pytest
from cuda.bindings import driver
from cuda.core._kernel_arg_handler import ParamHolder
from numba import types
from numba.np import numpy_support

from gpu_windows.kernels.cuda import session
from gpu_windows.kernels.cuda.kernel import CudaKernel
from gpu_windows.kernels.cuda.launcher import Launcher

STREAM, DEVICE, PLACEHOLDER = 0x5EED, 3, 0xE0

_api: Any = importlib.import_module("numba.cuda.api")
_dispatcher: Any = importlib.import_module("numba.cuda.dispatcher")
_typeof: Any = importlib.import_module("numba.cuda.typing.typeof")


class Array:
    """What looks like an array of CuPy's, but has no memory."""

    def __init__(
        self, dtype: Any, size: int, address: int = 0x7F00, strides: tuple[int, ...] | None = None
    ) -> None:
        self.dtype, self.size = np.dtype(dtype), size
        self.strides = (self.dtype.itemsize,) if strides is None else strides
        self.ndim = len(self.strides)
        self.flags = SimpleNamespace(c_contiguous=self.strides[-1:] == (self.dtype.itemsize,))
        self.data = SimpleNamespace(ptr=address)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        data, typestr = (self.data.ptr, False), self.dtype.str
        return {"shape": (self.size,), "typestr": typestr, "data": data, "version": 3}


class Launch(NamedTuple):
    """A call of the driver, and the parameters that it would copy, each of 8 bytes.

    It has none if the function is not of `Device.compiled`.
    """

    function: int
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared: int
    stream: int
    parameters: list[bytes]


class Device:
    """Stands in for the driver, for CuPy and for what Numba compiled.

    Attributes
    ----------
    launches : list of Launch
    asked : list
        Signatures whose functions were asked for; the first has the handle 0.
    status : object
        What launches come to.
    delay : float
        Seconds until a launch copies its parameters, in which other threads run.
    uses : int
        Threads that made a context their own.
    session : Session
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.launches: list[Launch] = []
        self.asked: list[Any] = []
        self.status: Any = driver.CUresult.CUDA_SUCCESS
        self.delay = 0.0
        self.uses = 0
        arrays = SimpleNamespace(
            ndarray=Array, zeros=lambda size, dtype: Array(dtype, size, PLACEHOLDER)
        )
        none = nullcontext()
        self.session = session.Session(
            arrays, self, none, lambda: none, lambda: None, STREAM, {}, DEVICE
        )
        monkeypatch.setattr(session, "_session", lambda *_: self.session)
        monkeypatch.setattr(driver, "cuLaunchKernel", self._launch)

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None: ...

    def use(self) -> None:
        """As CuPy's `Device.use`."""
        self.uses += 1

    def compiled(self, kernel: CudaKernel) -> CudaKernel:
        """Return the kernel as if it were compiled."""
        made = CudaKernel(kernel.definition, kernel.signatures)
        made._compiled = Launcher(made.name, SimpleNamespace(compile=self._ask), made.signatures)
        return made

    def _ask(self, signature: Any) -> Any:
        handle = driver.CUkernel(len(self.asked))
        self.asked.append(signature)
        library = SimpleNamespace(get_cufunc=lambda: SimpleNamespace(handle=handle))
        return SimpleNamespace(cooperative=False, library=library)

    def _launch(self, *arguments: Any) -> tuple[Any]:
        function, *dimensions, shared, stream, parameters, extra = arguments
        assert isinstance(function, driver.CUfunction)
        assert extra == 0
        time.sleep(self.delay)
        known = self.asked[int(function)] if int(function) < len(self.asked) else ()
        count = len(parameter_types(known))
        grid, block = tuple(dimensions[:3]), tuple(dimensions[3:])
        words = copied(parameters, count)
        self.launches.append(Launch(int(function), grid, block, shared, stream, words))
        return (self.status,)


def copied(address: int, count: int) -> list[bytes]:
    """Copy parameters of 8 bytes, as the driver does."""
    addresses = (ctypes.c_void_p * count).from_address(address)
    return [ctypes.string_at(found, 8) for found in addresses if found is not None]


def parameter_types(signature: Iterable[Any]) -> list[str]:
    """Return the types of a kernel's parameters as PTX calls them."""
    found: list[str] = []
    for kind in signature:
        if isinstance(kind, types.BaseTuple):
            found += parameter_types(kind)
        elif isinstance(kind, types.Array):
            found += [".u64"] * 7
        else:
            found.append(".f64" if kind == types.float64 else ".u64")
    return found


def arguments_for(signature: Iterable[Any]) -> tuple[Any, ...]:
    """Return arguments that a signature takes, no two of them with a value in common."""
    numbers = count(11)
    return tuple(_argument(kind, numbers) for kind in signature)


def _argument(kind: Any, numbers: Any) -> Any:
    if isinstance(kind, types.BaseTuple):
        return kind.instance_class(*(_argument(part, numbers) for part in kind))
    if isinstance(kind, types.Array):
        size, address = next(numbers), 0x7FFF_0000_0000 + next(numbers) * 512
        return Array(numpy_support.as_dtype(kind.dtype), size, address)
    return next(numbers) / 8 if kind == types.float64 else -next(numbers)


def numbas(signature: Iterable[Any], arguments: Iterable[Any]) -> tuple[Any, list[bytes]]:
    """Return how numba-cuda types arguments, and what it has the driver copy for a signature."""
    kernel = SimpleNamespace(extensions=[])
    kernel._prepare_args = lambda *parts: _dispatcher._Kernel._prepare_args(kernel, *parts)
    words: list[Any] = []
    wrapped = [*map(_wrapped, arguments)]
    for kind, argument in zip(signature, wrapped, strict=True):
        kernel._prepare_args(kind, argument, 0, [], words)
    typed = tuple(_typeof.typeof(argument, _typeof.Purpose.argument) for argument in wrapped)
    holder = ParamHolder(words)
    return typed, copied(holder.ptr, len(words))


def _wrapped(argument: Any) -> Any:
    if isinstance(argument, tuple):
        return type(argument)(*map(_wrapped, argument))
    if not isinstance(argument, Array):
        return argument
    # past the decorator, which wants a context
    wrap = _api.from_cuda_array_interface.__wrapped__
    return wrap(argument.__cuda_array_interface__, owner=argument, sync=False)


def pretend_driver(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let numba-cuda compile and load without linker and driver; return the names of functions.

    The place of a name is the handle of the function.
    """
    codegen: Any = importlib.import_module("numba.cuda.codegen")
    cudadrv: Any = importlib.import_module("numba.cuda.cudadrv.driver")
    loaded: list[str] = []

    def load(module: Any, name: str) -> Any:
        loaded.append(name)
        kernel = SimpleNamespace(handle=driver.CUkernel(len(loaded) - 1), attributes=Mock())
        return cudadrv.CudaPythonFunction(module, kernel, name)

    def make(*_: Any) -> Any:
        module = SimpleNamespace(initialized=True)
        module.get_function = lambda name: load(module, name)
        return module

    here = SimpleNamespace(id=0, compute_capability=(9, 0))
    context = SimpleNamespace(device=here, create_module_image=make)
    monkeypatch.setattr(_dispatcher, "get_current_device", lambda: here)
    monkeypatch.setattr(codegen.devices, "get_context", lambda: context)
    monkeypatch.setattr(codegen.CUDACodeLibrary, "get_cubin", lambda *_: b"")
    return loaded
