"""Inputs of the kernels of keys, and what they are by definition."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from gpu_windows.kernels.backend import Backend
from gpu_windows.rules import LONG_MAX, LONG_MIN

Ints = NDArray[np.int64]

#: Distinct values, and the place of every row's among them.
Distinct = tuple[Ints, Ints]


@dataclass(frozen=True)
class Values:
    """Values of which some may not count."""

    values: Ints
    valid: NDArray[np.bool_]


def define(case: Values) -> Distinct:
    """Return the distinct values in order of first appearance, and the place of every row's."""
    valid = case.valid if len(case.valid) else np.ones(len(case.values), np.bool_)
    counted = case.values[valid]
    values, first, inverse = np.unique(counted, return_index=True, return_inverse=True)
    order = np.argsort(first)
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    places = np.full(len(case.values), len(values))
    places[valid] = ranks[inverse]
    return values[order], places


def evaluate(backend: Backend, case: Values) -> Distinct:
    """Return what a back end makes of it."""
    there = backend.to_device(case.values), backend.to_device(case.valid)
    given: list[Ints] = []

    def number(values: Ints) -> Ints:
        given.append(values.copy())
        return np.arange(len(values) + 1)

    places = backend.to_host(backend.keys.codes(*there, number))
    (values,) = given
    assert {values.dtype.name, places.dtype.name} == {"int64"}
    return values, places


def assert_equal(found: Distinct, expected: Distinct) -> None:
    """Assert that values and places are those, and say shortly where they are not."""
    for name, got, wanted in zip(("values", "places"), found, expected, strict=True):
        np.testing.assert_array_equal(got, wanted, err_msg=name)


#: Close together, so that they are their own places; far apart; from end to end.
_NEAR, _FAR = st.integers(-5, 5), st.integers(-3, 3).map(lambda n: n * 10**12)
_ANY = st.one_of(_NEAR, st.sampled_from([LONG_MIN, LONG_MAX]), st.integers(LONG_MIN, LONG_MAX))


@st.composite
def values(draw: st.DrawFn, most: int) -> Values:
    """Draw a few values, more often than once each."""
    count = draw(st.integers(0, most))
    each = draw(st.sampled_from([_NEAR, _FAR, _ANY]))
    drawn = draw(st.lists(each, min_size=count, max_size=count))
    flags = st.lists(st.booleans(), min_size=count, max_size=count)
    valid = draw(st.one_of(st.just([]), flags))
    return Values(np.array(drawn, np.int64), np.array(valid, np.bool_))


def random_values(seed: int, count: int, keys: int, *, apart: int, nulls: bool = False) -> Values:
    """Return values of so many keys, so far from each other."""
    random = np.random.default_rng(seed)
    valid = random.random(count) < 0.8 if nulls else np.empty(0, np.bool_)
    return Values((random.integers(0, keys, count) - keys // 2) * apart, valid)
