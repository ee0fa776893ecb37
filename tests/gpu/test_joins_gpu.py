"""The CUDA kernels of joins on a real device: against definitions, and against the CPU kernels."""

from __future__ import annotations

from functools import partial

import pytest

from gpu_windows.kernels import backend
from gpu_windows.kernels.backend import Backend
from gpu_windows.rules import LONG_MAX, LONG_MIN
from tests.kernels.join_cases import MANY, assert_equal, define, evaluate, random_join

pytestmark = pytest.mark.gpu

_HOURS = 3 * 3_600_000_000

LARGE = {
    "many keys": partial(
        random_join, 20, 500_000, 500_000, 1_000, ticks=_HOURS, lower=-5_000_000, upper=5_000_000
    ),
    "a hot key": partial(
        random_join, 21, 50_000, 20_000, 1, ticks=_HOURS, lower=-5_000_000, upper=5_000_000
    ),
    "all of a key": partial(
        random_join, 22, 3_000, 1_000, 2, ticks=_HOURS, lower=LONG_MIN, upper=LONG_MAX
    ),
}


@pytest.mark.parametrize("name", MANY)
def test_small(cuda: Backend, name: str) -> None:
    assert_equal(evaluate(cuda, MANY[name]), define(MANY[name]))


@pytest.mark.parametrize("name", LARGE)
def test_large(cuda: Backend, name: str) -> None:
    case = LARGE[name]()
    assert_equal(evaluate(cuda, case), evaluate(backend.select("cpu"), case))
