"""The running CUDA kernels, run by Numba's simulator, against definitions in plain Python."""

from __future__ import annotations

from hypothesis import given

from gpu_windows.kernels import backend
from tests.examples import examples
from tests.kernels.running_cases import Runs, assert_equal, define, evaluate, runs

CUDA = backend.select("cuda")


@examples(30)
@given(runs())
def test_running(case: Runs) -> None:
    assert_equal(evaluate(CUDA, case), define(case))
