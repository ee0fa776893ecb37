"""CUDA kernels and the list of them."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from typing import Any

import gpu_windows.kernels.cuda as package
from gpu_windows.kernels.compile import compiling_alone
from gpu_windows.kernels.cuda import primitives
from gpu_windows.kernels.cuda.compiler import cache_target, compile_kernel
from gpu_windows.kernels.cuda.launcher import Launcher
from gpu_windows.kernels.cuda.session import working

_REGISTRY: dict[str, CudaKernel] = {}


class CudaKernel:
    """A CUDA kernel: compiled for fixed signatures at its first launch.

    Parameters
    ----------
    function : callable
        Plain Python, readable as the definition of the kernel; it strides over its items.
    signatures : list
        Numba argument types, one tuple each.
    """

    def __init__(self, function: Callable[..., Any], signatures: list[Any]) -> None:
        self.definition = function
        self.signatures = signatures
        self._compiled: Any = None

    @property
    def name(self) -> str:
        """Module and name, such as ``reduce.fold``."""
        module = self.definition.__module__.rpartition(".")[2]
        return f"{module}.{self.definition.__name__.lstrip('_')}"

    def __call__(self, count: int, *arguments: Any) -> None:
        """Launch over ``count`` items; does nothing for 0.

        Parameters
        ----------
        count : int
            Number of items, which is what the kernel strides over.
        *arguments
            Of the kernel; arrays are of the device.
        """
        if count == 0:
            return
        self.compile()
        primitives.launch(self._compiled, count, arguments)

    def compile(self) -> None:
        """Compile for the task's device, or load from the cache on disk, if that is not done."""
        if self._compiled is not None:
            return
        with working(), compiling_alone(self.definition, cache_target()):
            if self._compiled is None:  # another thread may have done it meanwhile
                compiled = compile_kernel(self.definition, self.signatures)
                self._compiled = Launcher(self.name, compiled, self.signatures)


def kernel(*signatures: Any) -> Callable[[Callable[..., Any]], CudaKernel]:
    """Make a `CudaKernel` of the decorated function and put it on the list."""

    def register(function: Callable[..., Any]) -> CudaKernel:
        made = CudaKernel(function, list(signatures))
        _REGISTRY[made.name] = made
        return made

    return register


def all_kernels() -> Mapping[str, CudaKernel]:
    """Return every kernel of this package, by name."""
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return dict(sorted(_REGISTRY.items()))
