"""Sums of floats in units of the greatest, and their order, in CPython and compiled."""

from __future__ import annotations

import itertools
import math
import struct
from types import SimpleNamespace
from typing import Any

import numba
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_windows import rules
from gpu_windows.kernels.compile import compile_rules
from gpu_windows.rules import fixed_point
from gpu_windows.rules.fixed_point import bits_of_order, exponent_of, in_units, order_of
from gpu_windows.rules.partials import fold
from tests.examples import examples

compiled = SimpleNamespace(**compile_rules(numba.njit(error_model="numpy"), rules))

EDGES = [
    0.0, -0.0, 1.0, -1.0, 5e-324, -5e-324, 2.2250738585072014e-308, 2.225073858507201e-308,
    1.7976931348623157e308, -1.7976931348623157e308, 0.1, 2.0**53, 2.0**53 + 2, 1e16, -1e16,
    math.inf, -math.inf, math.nan,
]  # fmt: skip

floats = st.one_of(st.floats(), st.sampled_from(EDGES), st.floats(-1e6, 1e6))


def bits_of(value: float) -> int:
    (bits,) = struct.unpack("<q", struct.pack("<d", value))
    return int(bits)


def float_of(bits: int) -> float:
    (value,) = struct.unpack("<d", struct.pack("<q", bits))
    return float(value)


def total(values: list[float], by: Any = fixed_point) -> float:
    """Add floats as the kernels of a device do."""
    exponent = max([by.exponent_of(bits_of(value)) for value in values], default=1)
    units = [by.in_units(bits_of(value), exponent) for value in values]
    assert all(abs(int(word)) <= 2**32 for words in units for word in words)
    words = [sum(int(each[n]) for each in units) for n in range(3)]
    return float(by.from_units(*words, exponent))


@pytest.fixture(params=["python", "compiled"])
def by(request: pytest.FixtureRequest) -> Any:
    """The rules, as they are and compiled."""
    return fixed_point if request.param == "python" else compiled


@examples(1_000)
@given(values=st.lists(floats, max_size=12))
def test_a_sum_is_as_near_as_the_greatest_summand_allows(values: list[float]) -> None:
    expected = sum(values)
    if not math.isfinite(expected) or not all(map(math.isfinite, values)):
        return
    exact, greatest = math.fsum(values), max(map(abs, values), default=0.0)
    allowed = math.ulp(exact) + len(values) * greatest * 2.0**-95
    assert abs(total(values) - exact) <= allowed
    assert total(values, compiled) == total(values)


@examples(500)
@given(values=st.lists(floats, max_size=8), seed=st.randoms(use_true_random=False))
def test_no_order_changes_a_sum(values: list[float], seed: Any) -> None:
    shuffled = list(values)
    seed.shuffle(shuffled)
    first, second = total(values), total(shuffled)
    assert bits_of(first) == bits_of(second) or (math.isnan(first) and math.isnan(second))


@examples(500)
@given(value=floats)
def test_a_float_alone_is_its_sum(value: float) -> None:
    assert total([value]) == value or (math.isnan(value) and math.isnan(total([value])))


def test_what_is_exact_stays_exact(by: Any) -> None:
    assert total([0.1] * 10, by) == math.fsum([0.1] * 10)
    assert total([2.0**53, 1.0, 1.0], by) == 2.0**53 + 2
    assert total([1e16, 1.0, -1e16], by) == 1.0
    assert total([5e-324] * 3, by) == 1.5e-323
    assert total([2.2250738585072014e-308, -5e-324], by) == 2.225073858507201e-308
    assert total([], by) == 0.0


def test_small_ones_are_not_lost_beside_what_is_taken_back(by: Any) -> None:
    found = total([1e18, -1e18, *[1e-3] * 5], by)
    assert found == pytest.approx(5e-3, abs=5 * 1e18 * 2.0**-95)
    assert total([1e20, 1.0, -1e20], by) == 1.0
    assert total([-1e20, -1.0, 1e20], by) == -1.0
    assert total([1e26, 1.5, -1e26], by) == 1.5
    assert total([1e200, 1.0, -1e200], by) == 0.0  # these are


def test_a_sum_of_two_thousand_million_has_room(by: Any) -> None:
    """The words of the greatest float, as often as a call may have rows."""
    for value in (1.7976931348623157e308, -1.7976931348623157e308, 1.0, -1.0):
        exponent = exponent_of(bits_of(value))
        count = 2**31 - 1
        words = [count * word for word in in_units(bits_of(value), exponent)]
        assert all(-(2**63) <= word < 2**63 for word in words)
        found = float(by.from_units(*words, exponent))
        assert found == value * count or math.isinf(found)


def test_infinities_and_nan_are_added_as_floats_are(by: Any) -> None:
    values = [math.inf, -math.inf, math.nan, 1.0, -1.7976931348623157e308, 0.0]
    for some in itertools.chain.from_iterable(
        itertools.combinations_with_replacement(values, n) for n in (1, 2, 3)
    ):
        expected, found = sum(some), total([*some], by)
        assert found == expected or (math.isnan(expected) and math.isnan(found)), some


def test_too_large_a_sum_is_infinite(by: Any) -> None:
    assert total([1.7976931348623157e308] * 2, by) == math.inf
    assert total([-1.7976931348623157e308] * 2, by) == -math.inf
    # floats, one after the other, would not find back
    assert total([1.7976931348623157e308] * 2 + [-1.7976931348623157e308] * 2, by) == 0.0


@examples(1_000)
@given(left=floats, right=floats)
def test_integers_have_the_order_of_floats(left: float, right: float) -> None:
    orders = [order_of(bits_of(value)) for value in (left, right)]
    assert orders == [compiled.order_of(bits_of(value)) for value in (left, right)]
    for how in (rules.MIN, rules.MAX):
        chosen = (min if how == rules.MIN else max)(orders)
        value, expected = float_of(bits_of_order(chosen)), fold(how, left, right)
        assert value == expected or (math.isnan(value) and math.isnan(expected))
        assert compiled.bits_of_order(chosen) == bits_of_order(chosen)


def test_where_there_is_no_float_is_what_changes_nothing(by: Any) -> None:
    for how in (rules.MIN, rules.MAX):
        nothing = float_of(int(by.bits_of_order(rules.IDENTITIES[how, "int64"])))
        expected = rules.IDENTITIES[how, "float64"]
        assert nothing == expected or (math.isnan(nothing) and math.isnan(expected))


def test_zeros_have_an_order_and_keep_their_sign(by: Any) -> None:
    below, above = (int(by.order_of(bits_of(value))) for value in (-0.0, 0.0))
    assert below < above
    assert math.copysign(1, float_of(int(by.bits_of_order(below)))) == -1
    assert math.copysign(1, float_of(int(by.bits_of_order(above)))) == 1
