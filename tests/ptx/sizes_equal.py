"""Kernels over more rows than a block has threads, also where a thread has many of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from gpu_windows import rules
from gpu_windows.kernels import backend
from gpu_windows.kernels.cuda import primitives
from gpu_windows.rules import LONG_MIN
from tests.kernels import range_cases
from tests.kernels.cases import assert_equal, evaluate, random_case
from tests.kernels.key_cases import Values
from tests.kernels.key_cases import assert_equal as assert_same_keys
from tests.kernels.key_cases import define as define_keys
from tests.kernels.key_cases import evaluate as evaluate_keys
from tests.kernels.range_cases import random_frames
from tests.lanes import quick
from tests.ptx.device import LEAST_BLOCKS, Device
from tests.ptx.plugin import device as installed

CPU, CUDA = backend.select("cpu"), backend.select("cuda")

LARGE = {
    "sliding": random_case(1, 40_000, 50, rules.sliding_grid(60, 7, 0), ticks=30_000),
    "one key, many tiles": random_case(2, 70_000, 1, rules.sliding_grid(900, 1, 3), ticks=69_000),
    "many keys": random_case(
        3, 50_000, 5_000, rules.sliding_grid(10, 10, 0), ticks=10**6, key_count=10**5
    ),
    "one group": random_case(4, 50_000, 1, rules.sliding_grid(10**6, 10**6, 0), ticks=1_000),
    "cumulative": random_case(5, 20_000, 20, rules.cumulative_grid(600, 10, 5), ticks=9_000),
}


@pytest.fixture(params=["a block for each 256 items", "two blocks"], autouse=True)
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    """The pretended device, with as many blocks as a device has, or few: then threads stride."""
    if request.param == "two blocks":
        monkeypatch.setattr(primitives, "_MAX_BLOCKS", LEAST_BLOCKS)
    found = installed()
    before = found.order
    yield found
    found.order = before


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("name", quick(LARGE, "sliding", "one group"))
def test_many_rows(device: Device, name: str, backwards: bool) -> None:
    device.order = replace(device.order, backwards=backwards)
    found = evaluate(CUDA, LARGE[name])
    assert_equal(found, evaluate(CPU, LARGE[name]), LARGE[name])


@pytest.mark.parametrize(("keys", "lower"), [(1, LONG_MIN), (3, -10_000), (5_000, -200)])
def test_scans_of_many_tiles(keys: int, lower: int) -> None:
    """More entries than threads of a block, squared: totals of tiles are scanned in tiles."""
    case = random_frames(9, 100_000, keys, lower, 0, spread=60_000)
    found, expected = (range_cases.evaluate(each, case) for each in (CUDA, CPU))
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        off = 1e-9 if name in ("mean", "m2", "add floats") else 0.0
        np.testing.assert_allclose(found[name], values, rtol=off, atol=off, err_msg=name)


@pytest.mark.parametrize(
    ("count", "apart"), [(1_000, 1), (60_000, 7), (100_000, 10**12), (300_000, 10**12)]
)
def test_distinct_keys_in_tables_of_real_sizes(count: int, apart: int) -> None:
    values = np.random.default_rng(8).integers(0, count, 400_000) * apart
    case = Values(values, CUDA.reduce.ALL)
    assert_same_keys(evaluate_keys(CUDA, case), define_keys(case))
