"""Moments of the CPU kernels against exact arithmetic, however far from 0 values are."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_windows.kernels import backend
from gpu_windows.kernels.cpu import running
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.rules.partials import difference, wide_moments, words_of
from tests.kernels.moments_cases import ACCURACY, MANY, Slices, check, slices, squares_of

CPU = backend.select("cpu")
INTS = st.integers(LONG_MIN, LONG_MAX) | st.sampled_from([LONG_MIN, -1, 0, 1, LONG_MAX])


@given(slices(most=150))
def test_moments_are_exact_to_13_digits(case: Slices) -> None:
    check(CPU, case)


@pytest.mark.parametrize("name", MANY)
def test_many_values(name: str) -> None:
    check(CPU, MANY[name])


@given(slices(most=4), st.randoms(use_true_random=False))
def test_moments_are_merged_in_any_order(case: Slices, random: Any) -> None:
    """The rule itself, in CPython: any two of the parts that are left, until there is one."""
    values: list[Fraction] = case.known(0, len(case.lengths) - 1)
    parts: list[tuple[int, float, float, float]] = []
    for value in values:
        words = words_of(int(value)) if case.values.dtype == np.int64 else (float(value), 0.0)
        parts.append((1, *words, 0.0))
    while len(parts) > 1:
        left, right = (parts.pop(random.randrange(len(parts))) for _ in range(2))
        parts.append(wide_moments(*left, *right))
    wanted = squares_of(values)
    for n, high, low, m2 in parts:
        assert n == len(values)
        assert abs(Fraction(m2) - wanted) <= ACCURACY * wanted
        off = Fraction(high) + Fraction(low) - sum(values, Fraction()) / n
        assert abs(off) <= ACCURACY * (max(values) - min(values))


@pytest.mark.parametrize("length", [8, 9, 63, 64, 65, 130])
@pytest.mark.parametrize("place", [0, 1, 7, 8, 64])
def test_one_value_is_far_from_all_others(length: int, place: int) -> None:
    """All that is summed is less a value that is not near the mean."""
    random = np.random.default_rng(length + place)
    for other in random.random(40) + 1.0:
        values = np.full(length, other)
        values[place % length] = 0.0
        check(CPU, Slices([length], values, np.empty(0, np.bool_)))


@given(INTS)
def test_an_integer_is_the_sum_of_its_words(value: int) -> None:
    high, low = words_of(value)
    assert high == float(value)
    assert Fraction(high) + Fraction(low) == value


@given(INTS, INTS)
def test_differences_are_rounded_once(one: int, other: int) -> None:
    exact = Fraction(one - other)
    assert abs(Fraction(difference(one, other)) - exact) <= abs(exact) / 2**53
    assert difference(one, one) == 0.0


@given(INTS, INTS)
def test_kernels_take_differences_that_do_not_fit_64_bits(one: int, other: int) -> None:
    case = Slices([2], np.array([one, other], np.int64), np.empty(0, np.bool_))
    check(CPU, case)


@pytest.mark.parametrize(
    "values", [[1e200, -1e200], [1e200, 1.0, -1e200], [-1e308, 1e308], [1e-200, 2e-200]]
)
def test_squares_that_no_float_has(values: list[float]) -> None:
    """As by the formula: infinite where they are too large, 0 where they are too small."""
    groups = CPU.grouping.runs(np.array([len(values)]))
    n, high, _, m2 = CPU.reduce.moments_of(groups, np.array(values), CPU.reduce.ALL)
    assert n == len(values)
    large = abs(values[0]) > 1
    assert m2 == (np.inf if large else 0.0)
    assert np.isfinite(high) == (abs(values[0]) < 1e300)


@pytest.mark.parametrize("odd", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("place", [0, 5, 70, 199])
def test_a_mean_is_finite_where_all_values_are(odd: float, place: int) -> None:
    values = np.arange(200.0)
    values[place] = odd
    groups = CPU.grouping.runs(np.array([100, 100]))
    parts = CPU.reduce.moments_of(groups, values, CPU.reduce.ALL)
    assert np.isfinite(parts[1]).tolist() == [place >= 100, place < 100]
    assert not np.isfinite(running.moments(np.array([0]), *parts)[1][1])
