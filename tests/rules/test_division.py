"""Division by a reciprocal against ``//``, in CPython and compiled, where numbers wrap around."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_windows import rules
from gpu_windows.kernels.cpu import rules as compiled
from gpu_windows.rules import LONG_MAX, LONG_MIN, Grid
from gpu_windows.rules.division import floor_divided, multiply_high
from gpu_windows.rules.slicing import slice_by_reciprocal
from tests.examples import examples

#: The least and the greatest; around powers of two; primes; lengths of time in microseconds.
DIVISORS = sorted(
    {2**k + shift for k in range(63) for shift in (-1, 0, 1) if 2**k + shift > 0}
    | {LONG_MAX, LONG_MAX - 1, 2**62 + 2**61, 6_700_417, 67_280_421_310_721, 2**61 - 1}
    | {7, 10, 11, 641, 1_000, 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000}
)

int64 = st.integers(LONG_MIN, LONG_MAX)
divisors = st.one_of(st.sampled_from(DIVISORS), st.integers(1, LONG_MAX), st.integers(1, 1_000))


def edges(divisor: int) -> list[int]:
    """Return dividends at which a quotient changes, or is the last one, near zero and far."""
    most, least = LONG_MAX // divisor, LONG_MIN // divisor
    multiples = {
        k * divisor for k in (least, least + 1, -2, -1, 0, 1, 2, most // 2, most - 1, most)
    }
    near = {multiple + shift for multiple in multiples for shift in (-1, 0, 1)}
    return [n for n in near | {LONG_MIN, LONG_MAX} if LONG_MIN <= n <= LONG_MAX]


def one_slice(slide: int) -> Grid:
    return rules.sliding_grid(slide, slide, 0)


def compiled_quotient(dividend: int, divisor: int) -> int:
    """Divide as the kernels do: tumbling windows without an offset are quotients."""
    slide = rules.reciprocal(divisor)
    return int(compiled.slice_by_reciprocal(dividend, one_slice(divisor), slide))


def python_quotient(dividend: int, divisor: int) -> int:
    return floor_divided(dividend, rules.reciprocal(divisor))


@pytest.mark.parametrize("divide", [compiled_quotient, python_quotient])
def test_quotients_by_hard_divisors(divide: Callable[[int, int], int]) -> None:
    for divisor in DIVISORS:
        for n in edges(divisor):
            assert divide(n, divisor) == n // divisor, (n, divisor)


@examples(2_000)
@given(int64, divisors)
def test_a_quotient_is_rounded_towards_minus_infinity(dividend: int, divisor: int) -> None:
    assert python_quotient(dividend, divisor) == dividend // divisor
    assert compiled_quotient(dividend, divisor) == dividend // divisor


@examples(500)
@given(divisors)
def test_quotients_change_where_they_must(divisor: int) -> None:
    for n in edges(divisor):
        assert compiled_quotient(n, divisor) == n // divisor, n


@examples(500)
@given(divisors)
def test_a_reciprocal_fits_into_int64(divisor: int) -> None:
    multiplier, shift = rules.reciprocal(divisor)
    assert LONG_MIN <= multiplier <= LONG_MAX
    assert 0 <= shift <= 62


@examples(1_000)
@given(int64, int64)
def test_the_upper_half_of_a_product(left: int, right: int) -> None:
    expected = (left % 2**64) * (right % 2**64) >> 64
    assert multiply_high(left, right) == expected


@st.composite
def grid_and_tick(draw: st.DrawFn) -> tuple[Grid, int]:
    """Grids with one or two slices a slide and usable ticks, often at the edges of slices."""
    longest = draw(st.sampled_from([40, 2**40, 2**59]))
    size, slide = draw(st.integers(1, longest)), draw(st.integers(1, longest))
    grid = rules.sliding_grid(size, slide, draw(st.integers(1 - slide, slide - 1)))
    low, high = rules.earliest_unit(grid), rules.latest_unit(grid)
    ts = draw(st.one_of(st.integers(low, high), st.integers(-3 * slide, 3 * slide)))
    start = rules.slice_start(rules.slice_of(ts, grid), grid)
    ts = draw(st.sampled_from([ts, start, start - 1, low, high]))
    return grid, min(max(ts, low), high)


@examples(1_000)
@given(grid_and_tick())
def test_the_slice_by_the_reciprocal_is_the_slice(case: tuple[Grid, int]) -> None:
    grid, ts = case
    slide, expected = rules.reciprocal(grid.slide), rules.slice_of(ts, grid)
    assert slice_by_reciprocal(ts, grid, slide) == expected
    assert compiled.slice_by_reciprocal(ts, grid, slide) == expected
    assert rules.slice_start(expected, grid) <= ts < rules.slice_start(expected + 1, grid)
