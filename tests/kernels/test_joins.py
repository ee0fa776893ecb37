"""The kernels of joins on CPU, and their rules, against definitions in plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_windows import rules
from gpu_windows.kernels import backend
from gpu_windows.rules import LONG_MAX, LONG_MIN
from tests.kernels.join_cases import MANY, Join, assert_equal, define, evaluate, joins

CPU = backend.select("cpu")

_LONGS = st.one_of(
    st.integers(-5, 5), st.integers(LONG_MIN, LONG_MAX), st.sampled_from([LONG_MIN, LONG_MAX])
)
_CODES = st.one_of(st.integers(0, 3), st.integers(0, 10**6))


@given(joins())
def test_every_kernel_is_its_definition(case: Join) -> None:
    assert_equal(evaluate(CPU, case), define(case))


@pytest.mark.parametrize("name", MANY)
def test_many_rows(name: str) -> None:
    assert_equal(evaluate(CPU, MANY[name]), define(MANY[name]))


def test_rows_in_order_are_not_sorted_again() -> None:
    codes, ts = np.array([0, 0, 1, 1]), np.array([3, 3, LONG_MIN, LONG_MAX])
    assert CPU.joins.sorted_by_time(codes, ts) is None
    assert CPU.joins.sorted_by_time(codes[:0], ts[:0]) is None


@given(st.lists(st.tuples(_CODES, _LONGS), max_size=200), st.booleans())
def test_equal_rows_stay_in_their_order(rows: list[tuple[int, int]], in_time: bool) -> None:
    rows = sorted(rows, key=lambda row: row[1]) if in_time else rows
    codes, ts = (np.array([row[part] for row in rows], np.int64) for part in (0, 1))
    expected = sorted(range(len(rows)), key=rows.__getitem__)
    order = CPU.joins.sorted_by_time(codes, ts)
    assert (list(range(len(rows))) if order is None else order.tolist()) == expected


@given(_LONGS, _LONGS)
def test_a_sum_beyond_int64_is_its_end(ts: int, by: int) -> None:
    assert rules.add_saturating(ts, by) == min(max(ts + by, LONG_MIN), LONG_MAX)


@given(st.lists(_LONGS, min_size=3, max_size=3).map(sorted))
def test_the_nearer_of_two_is_told_without_overflow(times: list[int]) -> None:
    earlier, ts, later = times
    assert rules.is_earlier_nearer(ts, earlier, later) == (ts - earlier <= later - ts)
