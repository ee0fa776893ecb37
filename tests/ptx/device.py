"""A device that runs the PTX of kernels on this CPU: installed, ``device="cuda"`` is it.

What is in the place of CUDA is CuPy (`tests.ptx.arrays`), the assembler of PTX and the driver's
launch; what lays out arguments, chooses signatures and counts blocks is the package's own.
"""

from __future__ import annotations

import importlib
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
from cuda.bindings import driver

from gpu_windows.kernels import backend
from gpu_windows.kernels.cuda import kernel as kernels
from gpu_windows.kernels.cuda import primitives, session
from tests.ptx.arrays import PretendedCupy
from tests.ptx.build import ptx_of
from tests.ptx.kernel import Counts, Mode, Order, PtxKernel, Race, array_places

#: Blocks of a launch at least: a device is given more, but they take time that have no item.
LEAST_BLOCKS = 2


class Device:
    """The pretended device.

    Attributes
    ----------
    order : Order
        How grids are run. A launch has a chance of its own, which the seed begins.
    launches : Counter of str
        How often every kernel ran.
    counts : Counts
        Of the last launch.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        """Put it in the place of CUDA's, until the patch is undone."""
        self.order, self.counts = Order(), Counts()
        self.launches: Counter[str] = Counter()
        self._loaded: list[tuple[str, Any, Any]] = []
        self._ran: set[PtxKernel] = set()
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

    def run_as(self, mode: str, seed: int) -> None:
        """Run grids in another order from now on; modes are those of `Mode`, in small letters."""
        self.order = Order(Mode[mode.upper()], seed)

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
        order = self.order
        if order.mode >= Mode.TURNS:
            order = replace(order, seed=1_000_003 * order.seed + self.launches.total())
        self._ran.add(kernel := host_kernel(definition, signature))
        self.counts = kernel.run(blocks, threads, parameters, order)
        return (driver.CUresult.CUDA_SUCCESS,)

    def forget_races(self) -> None:
        """Begin to note races again."""
        for kernel in self._ran:
            kernel.races.clear()

    @property
    def races(self) -> Counter[Race]:
        """What was met in `Mode.RACES`, by all kernels that ran here."""
        return sum((kernel.races for kernel in self._ran), Counter())


@cache
def host_kernel(function: Any, signature: Any) -> PtxKernel:
    """Return a kernel's PTX for a signature, ready to run on this CPU."""
    module = function.__module__.rpartition(".")[2]
    name = f"{module}.{function.__name__.lstrip('_')}"
    return PtxKernel(name, ptx_of(function, signature), array_places(signature))
