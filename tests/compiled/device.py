"""A device that runs compiled kernels on this CPU: installed, ``device="cuda"`` is it.

What is in the place of CUDA is CuPy (`tests.compiled.arrays`), the compiler behind NVVM and the
driver's launch; what lays out arguments, chooses signatures and counts blocks is the package's own.
"""

from __future__ import annotations

import importlib
import warnings
from collections import Counter
from contextlib import nullcontext
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
from cuda.bindings import driver

from gpu_windows.kernels import backend
from gpu_windows.kernels.cuda import kernel as kernels
from gpu_windows.kernels.cuda import primitives, session
from tests.compiled.arrays import PretendedCupy
from tests.compiled.grid import HostKernel
from tests.compiled.host_code import host_code

#: Blocks of a launch at least: a device is given more, but they take time that have no item.
LEAST_BLOCKS = 2


class Device:
    """The pretended device.

    Attributes
    ----------
    backwards : bool
        Whether the threads of blocks run in the opposite order.
    interleaved : bool
        Whether threads that do not wait for each other take turns at each access to an array.
    launches : Counter of str
        How often every kernel ran.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        """Put it in the place of CUDA's, until the patch is undone."""
        self.backwards = self.interleaved = False
        self.launches: Counter[str] = Counter()
        self._loaded: list[tuple[str, Any, Any]] = []
        arrays: Any = PretendedCupy()
        none = nullcontext()
        opened = session.Session(arrays, self, none, lambda: none, lambda: None, 1, {})
        importlib.import_module("gpu_windows.kernels.cuda.modules")  # all kernels
        patch.setattr(session, "_session", lambda *_: opened)
        patch.setattr(session, "uuids", lambda: ["GPU-pretended"])
        for name in ("why_not", "why_not_device"):
            patch.setattr(session, name, lambda *_: None)
        patch.setattr(backend, "why_no_cuda", lambda: None)
        patch.setattr(kernels, "compile_kernel", self._compiled)
        patch.setattr(kernels, "cache_target", lambda: None)
        for kernel in kernels.all_kernels().values():
            patch.setattr(kernel, "_compiled", None)
        patch.setattr(primitives, "_MIN_BLOCKS", LEAST_BLOCKS)
        patch.setattr(driver, "cuLaunchKernel", self._launch)

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None: ...

    def use(self) -> None:
        """As CuPy's `Device.use`."""

    def _compiled(self, function: Any, signatures: Any) -> Any:
        """Return what Numba's dispatcher is to a `Launcher`."""
        del signatures
        return SimpleNamespace(compile=lambda signature: self._overload(function, signature))

    def _overload(self, function: Any, signature: Any) -> Any:
        module = function.__module__.rpartition(".")[2]
        name = f"{module}.{function.__name__.lstrip('_')}"
        self._loaded.append((name, function, signature))
        handle = driver.CUfunction(len(self._loaded) - 1)
        library = SimpleNamespace(get_cufunc=lambda: SimpleNamespace(handle=handle))
        return SimpleNamespace(cooperative=False, library=library)

    def _launch(
        self, function: Any, blocks: int, _y: int, _z: int, threads: int, *rest: Any
    ) -> tuple[Any]:
        *_, parameters, _ = rest
        name, definition, signature = self._loaded[int(function)]
        self.launches[name] += 1
        found = _host_kernel(definition, signature, interleaved=self.interleaved)
        found.run(blocks, threads, parameters, backwards=self.backwards)
        return (driver.CUresult.CUDA_SUCCESS,)


@cache
def _host_kernel(function: Any, signature: Any, *, interleaved: bool) -> HostKernel:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return HostKernel(host_code(function, signature), interleaved=interleaved)
