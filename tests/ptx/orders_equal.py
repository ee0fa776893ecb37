"""The threads of all blocks run in any order: results have the same bits, and no threads race."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any

import pytest

from gpu_windows.kernels.cuda.kernel import all_kernels
from tests.ptx.device import Device
from tests.ptx.kernel import Mode, Order
from tests.ptx.plugin import device as installed
from tests.ptx.workloads import bits, share_places, workloads

WORKLOADS = workloads()
#: Of chance: in `make check`, and in `make nightly` 50 for each mode.
FEW, MANY = range(2), range(2, 52)
APART, SHARED = "a place and an item for a thread", "few of both"
#: Whose tables have places for 262,144 threads, which take 20 s an order: two orders of them in
#: `make nightly`.
WIDE = ("sliding", "cumulative", "one key, many tiles")


def _random_orders() -> Iterator[Any]:
    for places, name, mode in product((APART, SHARED), WORKLOADS, (Mode.TURNS, Mode.WEAK)):
        is_wide = places == APART and name in WIDE
        for seed in FEW if is_wide else (*FEW, *MANY):
            is_slow = is_wide or seed in MANY
            marks = pytest.mark.slow if is_slow else ()
            yield pytest.param(places, name, mode, seed, marks=marks)


each_workload = pytest.mark.parametrize("name", WORKLOADS)


@pytest.fixture
def device() -> Iterator[Device]:
    """The pretended device."""
    found = installed()
    before = found.order
    yield found
    found.order = before


@pytest.fixture(params=[APART, SHARED])
def places(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Set how many places of tables there are, and how many blocks.

    Where threads share places, they meet more often; where they are few, each has several items,
    so that loops turn that NVVM unrolled.
    """
    if request.param == SHARED:
        share_places(monkeypatch)
    return str(request.param)


@cache
def _in_order(name: str, places: str) -> list[bytes]:
    del places  # the results of either are kept
    return bits(WORKLOADS[name]())


@pytest.mark.parametrize(
    ("places", "name", "mode", "seed"),
    [*_random_orders()],
    indirect=["places"],
    ids=lambda value: value.name.lower() if isinstance(value, Mode) else None,
)
def test_any_order_gives_the_same_bits(
    device: Device, places: str, name: str, mode: Mode, seed: int
) -> None:
    expected = _in_order(name, places)
    device.order = Order(mode, seed)
    assert bits(WORKLOADS[name]()) == expected


@each_workload
def test_the_opposite_order_gives_the_same_bits(device: Device, places: str, name: str) -> None:
    expected = _in_order(name, places)
    device.order = Order(backwards=True)
    assert bits(WORKLOADS[name]()) == expected


def test_threads_race_nowhere_and_all_kernels_are_in_workloads(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Counter(device.launches)
    device.order = Order(Mode.RACES)
    device.forget_races()
    for work in WORKLOADS.values():
        work()
    share_places(monkeypatch)
    for work in WORKLOADS.values():
        work()
    assert sorted({(race.kernel, race.kind) for race in device.races}) == []
    assert set(all_kernels()) == set(device.launches - before)
