"""Kernels that are wrong on purpose are found out: what is looked for is seen where it is."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest

from gpu_windows.kernels.cuda.kernel import CudaKernel, all_kernels
from tests.ptx import device as devices
from tests.ptx.build import ptx_of
from tests.ptx.kernel import KernelFaultError, Mode, Order, PtxKernel, array_places
from tests.ptx.mutants import mutants
from tests.ptx.plugin import device as installed
from tests.ptx.workloads import share_places, workloads

WORKLOADS = workloads()
KERNELS = {
    name: kernel
    for name, kernel in all_kernels().items()
    if next(mutants(ptx_of(kernel.definition, kernel.signatures[0])), None)
}

#: A thread that comes by has set the flag already.
MISSED = {"joins.find_unsorted": [f"atomic {number}" for number in (2, 5, 6, 7, 8, 9)]}


@pytest.fixture(autouse=True)
def races(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Look for races, and share places, so that there would be some."""
    share_places(monkeypatch)
    found = installed()
    before, found.order = found.order, Order(Mode.RACES)
    yield
    found.order = before


@cache
def _launched_by() -> dict[str, list[str]]:
    """Return the workloads that launch each kernel, the shorter ones first."""
    found: dict[str, list[str]] = {}
    sizes: dict[str, int] = {}
    for name, work in WORKLOADS.items():
        before = installed().launches.copy()
        work()
        launched = installed().launches - before
        sizes[name] = launched.total()
        for kernel in launched:
            found.setdefault(kernel, []).append(name)
    return {kernel: sorted(names, key=sizes.__getitem__) for kernel, names in found.items()}


def _is_seen(kernel: CudaKernel, text: str, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Run workloads with other PTX of a kernel, until there is a race or a fault."""
    wrong = PtxKernel(kernel.name, text, array_places(kernel.signatures[0]))
    host_kernel = devices.host_kernel

    def chosen(function: object, signature: object) -> PtxKernel:
        is_it = function is kernel.definition and signature == kernel.signatures[0]
        return wrong if is_it else host_kernel(function, signature)

    with monkeypatch.context() as patch:
        patch.setattr(devices, "host_kernel", chosen)
        for name in _launched_by()[kernel.name]:
            try:
                WORKLOADS[name]()
            except (KernelFaultError, AssertionError, IndexError, ValueError):
                return True  # wrong numbers lead to others
            if wrong.races:
                return True
    return False


@pytest.mark.parametrize("name", KERNELS)
def test_what_is_missing_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = KERNELS[name]
    text = ptx_of(kernel.definition, kernel.signatures[0])
    changed = dict(mutants(text))
    missed = [what for what, wrong in changed.items() if not _is_seen(kernel, wrong, monkeypatch)]
    assert missed == MISSED.get(name, [])
