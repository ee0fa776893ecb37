"""The CUDA kernels of joins against definitions in plain Python."""

from __future__ import annotations

import pytest
from hypothesis import given

from gpu_windows.kernels import backend
from tests.examples import examples
from tests.kernels.join_cases import MANY, Join, assert_equal, define, evaluate, joins

CUDA = backend.select("cuda")


@examples(40)
@given(joins(most_rows=12))
def test_small(case: Join) -> None:
    assert_equal(evaluate(CUDA, case), define(case))


@pytest.mark.parametrize("name", MANY)
def test_many_rows(name: str) -> None:
    assert_equal(evaluate(CUDA, MANY[name]), define(MANY[name]))
