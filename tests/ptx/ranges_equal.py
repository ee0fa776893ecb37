"""The CUDA kernels that combine ranges against definitions."""

from __future__ import annotations

import pytest
from hypothesis import given

from gpu_windows.kernels import backend
from tests.examples import examples
from tests.kernels.range_cases import MANY, Frames, assert_equal, define, evaluate, frames

CUDA = backend.select("cuda")


@examples(30)
@given(frames(most=12))
def test_small(case: Frames) -> None:
    assert_equal(evaluate(CUDA, case), define(case))


@pytest.mark.parametrize("name", MANY)
def test_many_rows(name: str) -> None:
    assert_equal(evaluate(CUDA, MANY[name]), define(MANY[name]))
