"""Kernels that are wrong on purpose are found out: what is looked for is seen where it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import pytest

from gpu_windows.kernels.cuda.kernel import CudaKernel, all_kernels
from tests.lanes import quick
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

#: Kernels with every kind of mutant. The others are for the nightly lane: a C compiler makes a
#: library of each mutant, and there are 300.
SOME = ("float_cells.exponents", "keys.begin", "merge_path.merge_tiles")

MISSED = {
    # A thread that comes by has set the flag already.
    "joins.find_unsorted": [f"atomic {number}" for number in (2, 5, 6, 7, 8, 9)],
    # The last barrier of a fold is for other threads, and the first one alone takes it.
    **{
        name: ["barrier 8"]
        for name in ("assign.assign", "keys.begin", "reach.reach", "reach.summarize")
    },
    # That of a sum is for the next one, and there is none.
    "keys.collect": ["barrier 17"],
}


@pytest.fixture(autouse=True)
def races() -> Iterator[None]:
    """Look for races."""
    found = installed()
    before, found.order = found.order, Order(Mode.RACES)
    yield
    found.order = before


@contextmanager
def _places(*, shared: bool) -> Iterator[None]:
    """Share the places of a cell, so that there would be races, or have many to fold."""
    with pytest.MonkeyPatch.context() as patch:
        if shared:
            share_places(patch)
        yield


@cache
def _launched_by(*, shared: bool) -> dict[str, list[str]]:
    """Return the workloads that launch each kernel, the shorter ones first."""
    found: dict[str, list[str]] = {}
    sizes: dict[str, int] = {}
    for name, work in WORKLOADS.items():
        before = installed().launches.copy()
        with _places(shared=shared):
            work()
        launched = installed().launches - before
        sizes[name] = launched.total()
        for kernel in launched:
            found.setdefault(kernel, []).append(name)
    return {kernel: sorted(names, key=sizes.__getitem__) for kernel, names in found.items()}


def _is_seen(kernel: CudaKernel, text: str, *, shared: bool) -> bool:
    """Run workloads with other PTX of a kernel, until there is a race or a fault."""
    names = _launched_by(shared=shared).get(kernel.name, [])
    wrong = PtxKernel(kernel.name, text, array_places(kernel.signatures[0]))
    host_kernel = devices.host_kernel

    def chosen(function: object, signature: object) -> PtxKernel:
        is_it = function is kernel.definition and signature == kernel.signatures[0]
        return wrong if is_it else host_kernel(function, signature)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(devices, "host_kernel", chosen)
        for name in names:
            try:
                WORKLOADS[name]()
            except (KernelFaultError, AssertionError, IndexError, ValueError):
                return True  # wrong numbers lead to others
            if wrong.races:
                return True
    return False


@pytest.mark.parametrize("name", quick(KERNELS, *SOME, nightly=KERNELS.keys() - {*SOME}))
def test_what_is_missing_is_seen(name: str) -> None:
    kernel = KERNELS[name]
    text = ptx_of(kernel.definition, kernel.signatures[0])
    missed = dict(mutants(text))
    for shared in (True, False):
        with _places(shared=shared):
            missed = {
                what: wrong
                for what, wrong in missed.items()
                if not _is_seen(kernel, wrong, shared=shared)
            }
    assert [*missed] == MISSED.get(name, [])
