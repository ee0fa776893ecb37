"""Aggregates over frames with CUDA kernels against the reference."""

from __future__ import annotations

import pytest
from hypothesis import given

import gpu_windows as gw
from tests.examples import examples
from tests.operators.over.queries import (
    AGGREGATES,
    Case,
    assert_same,
    cases,
    range_of,
    result,
    rows_of,
)


@examples(10)
@given(cases(most=10))
def test_small(case: Case) -> None:
    assert_same(result(case, device="cuda"), result(case, "reference"))


@pytest.mark.parametrize("frame", [range_of(40), gw.Rows(5, 2), range_of(None)], ids=str)
def test_many_rows(frame: gw.typing.Frame) -> None:
    names = ("n", "total", "sum_x", "least", "spread", "last", "at_most")
    made = {name: AGGREGATES[name].over(frame) for name in names}
    case = Case(rows_of(5, 120, keys=2, ticks=160), made)
    assert_same(result(case, device="cuda"), result(case, "reference"))
