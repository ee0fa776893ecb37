"""Compile every kernel of a back end now, so that no query waits for it."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from time import perf_counter
from typing import Any, Protocol

from gpu_windows.kernels.compile import Kernel


class Compilable(Protocol):
    """A kernel of either back end."""

    def compile(self) -> None:
        """Compile, or load from the cache on disk, if that is not done."""


def warm(package: str) -> Iterator[tuple[str, float]]:
    """Yield the name of every kernel and the seconds that it took, as each is compiled.

    Parameters
    ----------
    package : {"cpu", "cuda"}
        Kernels of "cuda" are compiled for the device that `gpu_windows.kernels.backend.select`
        chose last.
    """
    for name, kernel in kernels_of(package).items():
        began = perf_counter()
        kernel.compile()
        yield name, perf_counter() - began


def kernels_of(package: str) -> Mapping[str, Compilable]:
    """Return every kernel of a back end, "cpu" or "cuda", by name; of CuPy's those we need."""
    if package == "cuda":
        cuda: Any = importlib.import_module("gpu_windows.kernels.cuda.kernel")
        cupy: Any = importlib.import_module("gpu_windows.kernels.cuda.cupy_kernels")
        return {**cuda.all_kernels(), **cupy.cupy_kernels()}
    return dict(_cpu_kernels())


def _cpu_kernels() -> Iterator[tuple[str, Compilable]]:
    cpu = importlib.import_module("gpu_windows.kernels.cpu")
    for info in sorted(pkgutil.iter_modules(cpu.__path__), key=lambda info: info.name):
        module = importlib.import_module(f"{cpu.__name__}.{info.name}")
        for value in vars(module).values():
            if isinstance(value, Kernel) and value.definition.__module__ == module.__name__:
                yield f"{info.name}.{value.definition.__name__.lstrip('_')}", value
