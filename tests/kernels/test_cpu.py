"""The CPU kernels against their definitions in plain Python."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpu_windows import rules
from gpu_windows.kernels import backend
from gpu_windows.kernels.cpu import grouping
from gpu_windows.kernels.cpu.keys import Encoder, TextEncoder, hash_bytes
from gpu_windows.rules import LONG_MAX, LONG_MIN
from tests.kernels import definitions, key_cases, range_cases, running_cases
from tests.kernels.cases import Case, apart, assert_equal, cases, evaluate, random_case
from tests.lanes import quick

NOTHING = random_case(0, 0, 1, rules.sliding_grid(7, 3, 0), ticks=10)
APART = apart()
CPU = backend.select("cpu")


@given(cases())
@example(NOTHING)
@example(APART)
def test_every_kernel_is_its_definition(case: Case) -> None:
    assert_equal(evaluate(CPU, case), definitions.evaluate(case), case)


@given(running_cases.runs(most=20))
def test_running_kernels_are_their_definitions(case: running_cases.Runs) -> None:
    running_cases.assert_equal(running_cases.evaluate(case), running_cases.define(case))


@given(key_cases.values(most=30))
def test_distinct_keys_are_their_definition(case: key_cases.Values) -> None:
    key_cases.assert_equal(key_cases.evaluate(CPU, case), key_cases.define(case))


def test_the_host_has_strings_of_its_own() -> None:
    assert CPU.keys.texts(pa.array(["a"]), np.arange) is None


MANY = {
    "one key, many rows a group": random_case(1, 3_000, 1, rules.sliding_grid(50, 50, 0), ticks=90),
    "a long span, slide divides size": random_case(
        2, 1_500, 2, rules.sliding_grid(3_600, 1, 0), ticks=5_000
    ),
    "a long span, slide does not divide size": random_case(
        3, 800, 3, rules.sliding_grid(1_001, 2, -7), ticks=4_000
    ),
    "gaps between windows": random_case(4, 2_000, 5, rules.sliding_grid(3, 10, 4), ticks=500),
    "cumulative": random_case(5, 2_000, 4, rules.cumulative_grid(600, 10, 5), ticks=3_000),
    "sparse keys: hashed": random_case(
        6, 2_000, 40, rules.sliding_grid(60, 7, 0), ticks=3_000, key_count=1_000_000
    ),
    "sparse times: hashed": random_case(
        7, 2_000, 40, rules.sliding_grid(2, 1, 0), ticks=10_000_000
    ),
}


@pytest.mark.parametrize(
    "name", quick(MANY, "cumulative", "gaps between windows", nightly=["sparse keys: hashed"])
)
def test_many_rows(name: str) -> None:
    assert_equal(evaluate(CPU, MANY[name]), definitions.evaluate(MANY[name]), MANY[name])


def test_both_ways_to_group_rows_give_the_same() -> None:
    case = MANY["cumulative"]
    hashed = replace(case, key_count=10**9)
    dense_groups = grouping.group(case.codes, case.ts, case.key_count)
    hashed_groups = grouping.group(case.codes, case.ts, hashed.key_count)
    assert dense_groups.size > hashed_groups.size
    assert_equal(evaluate(CPU, hashed), evaluate(CPU, case), case)


def test_sums_of_floats_are_added_row_after_row() -> None:
    values = np.array([1e16, 1.0, -1e16, 1.0])
    groups = grouping.group(np.zeros(4, np.int64), np.zeros(4, np.int64), 1)
    total = CPU.reduce.reduce(rules.ADD, groups, values, CPU.reduce.ALL)
    assert total.tolist() == [((1e16 + 1.0) - 1e16) + 1.0]


@given(st.lists(st.one_of(st.integers(-3, 3), st.integers(LONG_MIN, LONG_MAX)), max_size=50))
def test_codes_count_up_in_order_of_first_appearance(values: list[int]) -> None:
    encoder = Encoder()
    half = len(values) // 2
    parts = [encoder.encode(np.array(part, np.int64)) for part in (values[:half], values[half:])]
    codes = dict.fromkeys(values)
    expected = {value: code for code, value in enumerate(codes)}
    assert np.concatenate(parts).tolist() == [expected[value] for value in values]
    assert encoder.values.tolist() == list(codes)


def test_the_encoder_grows() -> None:
    values = np.random.default_rng(8).permutation(np.arange(-50_000, 50_000) * 2**40)
    encoder = Encoder()
    assert encoder.encode(values).tolist() == list(range(len(values)))
    assert encoder.encode(values[::-1].copy()).tolist() == list(range(len(values)))[::-1]


def as_texts(values: list[bytes]) -> tuple[Any, Any]:
    """Return where texts begin in an array that begins with something else, and the array."""
    offsets = np.cumsum([3, *map(len, values)])
    return offsets, np.frombuffer(b"xyz" + b"".join(values), np.uint8)


@given(st.lists(st.binary(max_size=2), max_size=50))
def test_codes_of_texts_count_up_in_order_of_first_appearance(values: list[bytes]) -> None:
    encoder = TextEncoder()
    half = len(values) // 2
    parts = [encoder.encode(*as_texts(part)) for part in (values[:half], values[half:])]
    known = list(dict.fromkeys(values))
    assert np.concatenate(parts).tolist() == [known.index(value) for value in values]
    assert encoder.data.tobytes() == b"".join(known)
    assert np.diff(encoder.offsets).tolist() == [len(text) for text in known]
    hashes = np.empty(len(known), np.int64)
    hash_bytes(*as_texts(known), hashes)
    assert encoder.hashes.tolist() == hashes.tolist()


def test_the_encoder_of_texts_grows() -> None:
    values = [str(n).encode() for n in range(20_000)]
    encoder = TextEncoder()
    assert encoder.encode(*as_texts(values)).tolist() == list(range(len(values)))
    assert encoder.encode(*as_texts(values[::-1])).tolist() == list(range(len(values)))[::-1]


@given(range_cases.frames())
def test_ranges_are_their_definitions(case: range_cases.Frames) -> None:
    range_cases.assert_equal(range_cases.evaluate(CPU, case), range_cases.define(case))


@pytest.mark.parametrize("name", range_cases.MANY)
def test_ranges_of_many_rows(name: str) -> None:
    case = range_cases.MANY[name]
    range_cases.assert_equal(range_cases.evaluate(CPU, case), range_cases.define(case))
