"""The kernels of joins on CPU, and their rules, against definitions in plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_windows import rules
from gpu_windows.kernels import backend
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.rules.joins import is_earlier_nearer
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


@given(st.lists(st.tuples(_CODES, _LONGS), max_size=200), st.booleans())
def test_equal_rows_stay_in_their_order(rows: list[tuple[int, int]], in_time: bool) -> None:
    rows = sorted(rows, key=lambda row: row[1]) if in_time else rows
    codes, ts = (np.array([row[part] for row in rows], np.int64) for part in (0, 1))
    expected = sorted(range(len(rows)), key=rows.__getitem__)
    assert CPU.joins.sort(codes, ts).numbers.tolist() == expected


@given(_LONGS, _LONGS)
def test_a_sum_beyond_int64_is_its_end(ts: int, by: int) -> None:
    assert rules.add_saturating(ts, by) == min(max(ts + by, LONG_MIN), LONG_MAX)


@given(st.lists(_LONGS, min_size=3, max_size=3).map(sorted))
def test_the_nearer_of_two_is_told_without_overflow(times: list[int]) -> None:
    earlier, ts, later = times
    assert is_earlier_nearer(ts, earlier, later) == (ts - earlier <= later - ts)
