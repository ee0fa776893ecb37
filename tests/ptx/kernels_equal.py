"""The CUDA kernels against the CPU kernels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given

from gpu_windows import rules
from gpu_windows.errors import DeviceMemoryError
from gpu_windows.kernels import backend
from gpu_windows.kernels.cuda import grouping
from tests.examples import examples
from tests.kernels.cases import Case, apart, assert_equal, cases, evaluate, random_case
from tests.ptx.arrays import PretendedCupy

CPU = backend.select("cpu")
CUDA = backend.select("cuda")

NOTHING = random_case(0, 0, 1, rules.sliding_grid(7, 3, 0), ticks=10)

MANY = {
    "three levels of pieces": random_case(1, 2_600, 2, rules.sliding_grid(50, 50, 0), ticks=60),
    "a long span": random_case(2, 150, 1, rules.sliding_grid(3_600, 1, 0), ticks=5_000),
    "a long span, slide does not divide size": random_case(
        3, 150, 2, rules.sliding_grid(1_001, 2, -7), ticks=4_000
    ),
    "gaps between windows": random_case(4, 400, 5, rules.sliding_grid(3, 10, 4), ticks=300),
    "cumulative": random_case(5, 300, 3, rules.cumulative_grid(600, 10, 5), ticks=3_000),
    "64-bit sort keys": random_case(
        6, 200, 20, rules.sliding_grid(60, 7, 0), ticks=10**8, key_count=10**6
    ),
    "more cells than a table has": random_case(
        8, 200, 20, rules.sliding_grid(10, 10, 0), ticks=10**6, key_count=20
    ),
    "more cells than a table has, one key": random_case(
        9, 1_100, 1, rules.sliding_grid(3, 3, 0), ticks=10**6
    ),
    "more cells than a table has, gaps": random_case(
        10, 200, 3, rules.sliding_grid(2, 5, 1), ticks=10**6
    ),
    "keys too wide to be one": random_case(
        7, 100, 20, rules.sliding_grid(2, 2, 0), ticks=2**61, key_count=10**6
    ),
}


@examples(60)
@given(cases(most_rows=40))
@example(NOTHING)
@example(apart())
def test_small(case: Case) -> None:
    assert_equal(evaluate(CUDA, case), evaluate(CPU, case), case)


@pytest.mark.parametrize("name", MANY)
def test_many_rows(name: str) -> None:
    assert_equal(evaluate(CUDA, MANY[name]), evaluate(CPU, MANY[name]), MANY[name])


def test_a_group_is_cut_into_pieces() -> None:
    rows = grouping.PIECE**2 + 1
    zeros = CUDA.to_device(np.zeros(rows, np.int64))
    levels = grouping.group(zeros, zeros, 1).levels
    assert [level.count for level in levels] == [grouping.PIECE + 1, 2, 1]


def test_other_keys_do_not_change_a_sum_of_floats() -> None:
    random = np.random.default_rng(0)
    values, slices = random.normal(size=300) * 1e9, np.zeros(300, np.int64)
    alone = grouping.group(CUDA.to_device(slices), CUDA.to_device(slices), 1)
    whole = CUDA.reduce.reduce(rules.ADD, alone, CUDA.to_device(values), CUDA.reduce.ALL)
    codes = np.repeat([0, 1], [37, 300])[random.permutation(337)]
    mixed = np.zeros(337)
    mixed[codes == 1] = values
    both = grouping.group(CUDA.to_device(codes), CUDA.to_device(codes * 0), 2)
    sums = CUDA.reduce.reduce(rules.ADD, both, CUDA.to_device(mixed), CUDA.reduce.ALL)
    assert CUDA.to_host(sums)[1] == CUDA.to_host(whole)[0]


@pytest.mark.parametrize("how", [rules.ADD, rules.MIN, rules.MAX])
def test_no_order_of_rows_changes_what_floats_fold_to(how: int) -> None:
    random = np.random.default_rng(1)
    values = random.normal(size=200) * 10.0 ** random.integers(-20, 20, 200)
    codes = random.integers(0, 7, 200)
    found = []
    for order in (np.arange(200), random.permutation(200)):
        keys = CUDA.to_device(codes[order])
        groups = grouping.group(keys, CUDA.to_device(codes * 0), 7)
        assert groups.cells is not None
        rows = CUDA.to_device(values[order])
        found.append(CUDA.to_host(CUDA.reduce.reduce(how, groups, rows, CUDA.reduce.ALL)))
    assert found[0].tobytes() == found[1].tobytes()
    if how == rules.ADD:
        exact = [math.fsum(values[codes == code]) for code in range(7)]
        bound = [2.0**-60 * np.abs(values[codes == code]).sum() for code in range(7)]
        assert (np.abs(found[0] - exact) <= bound + np.spacing(np.abs(exact))).all()


def test_an_exhausted_device_is_a_typed_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise MemoryError("out of memory allocating 1 byte")

    monkeypatch.setattr(PretendedCupy, "empty", refuse)
    with pytest.raises(DeviceMemoryError, match="must fit into device memory: out of memory"):
        CUDA.empty(1 << 20, np.int64)
