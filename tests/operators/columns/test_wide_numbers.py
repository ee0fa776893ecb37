"""Decimals of up to 38 digits, uint64, and the order of text: exact in all kinds of windows."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_windows as gw
from gpu_windows.column_types.logical import logical_type
from gpu_windows.errors import ArithmeticOverflowError, UnsupportedAggregateError
from gpu_windows.operators.columns.numeric import upper_words, values_of
from tests.examples import examples

DIGITS = Context(prec=80)
STRATEGY = gw.WatermarkStrategy.for_monotonous_timestamps()


def decimals(precision: int) -> st.SearchStrategy[int]:
    """Unscaled values, of which many are at the ends of words and of the type."""
    most = 10**precision - 1
    ends = [0, 1, -1, most, -most]
    ends += [s * (1 << b) + d for b in (31, 32, 63, 64, 96) for s in (1, -1) for d in (-1, 0, 1)]
    return st.one_of(st.integers(-most, most), st.sampled_from([e for e in ends if abs(e) <= most]))


#: Types, and values as whole numbers.
TYPES: dict[str, tuple[pa.DataType, st.SearchStrategy[int]]] = {
    "money of a bank": (pa.decimal128(19, 4), decimals(19)),
    "a sum of these": (pa.decimal128(29, 4), decimals(29)),
    "the widest": (pa.decimal128(38, 10), decimals(30)),
    "uint64": (pa.uint64(), st.one_of(st.integers(0, 2**64 - 1), st.just(2**63))),
}


def value_of(dtype: pa.DataType, number: int | None) -> Any:
    if number is None or pa.types.is_uint64(dtype):
        return number
    return Decimal(number).scaleb(-dtype.scale, DIGITS)


def table_of(dtype: pa.DataType, numbers: list[int | None]) -> pa.Table:
    times = [datetime.fromtimestamp(2 * place, UTC) for place in range(len(numbers))]
    return pa.table(
        {
            "k": pa.array([place % 3 for place in range(len(numbers))], pa.int64()),
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "v": pa.array([value_of(dtype, each) for each in numbers], dtype),
        }
    )


AGGREGATES: dict[str, Any] = {
    "total": gw.sum("v"),
    "mean": gw.mean("v"),
    "low": gw.min("v"),
    "high": gw.max("v"),
    "n": gw.count("v"),
    "kinds": gw.count_distinct("v"),
}


def expected(dtype: pa.DataType, numbers: list[int]) -> dict[str, Any]:
    """Return the aggregates of whole numbers, by Python's."""
    dtype = logical_type(dtype)
    if not numbers:
        return {"total": None, "mean": None, "low": None, "high": None, "n": 0, "kinds": 0}
    exact = Fraction(sum(numbers), len(numbers))
    whole = math.floor(abs(exact) * 10_000 + Fraction(1, 2))  # half away from zero
    sign = -1 if exact < 0 else 1
    return {
        "total": value_of(dtype, sum(numbers)),
        "mean": Decimal(sign * whole).scaleb(-dtype.scale - 4, DIGITS),
        "low": value_of(dtype, min(numbers)),
        "high": value_of(dtype, max(numbers)),
        "n": len(numbers),
        "kinds": len({*numbers}),
    }


def _tumbling(keyed: Any) -> Any:
    return (
        keyed.window(gw.TumblingEventTimeWindows.of("12 seconds"))
        .with_outputs()
        .aggregate(**AGGREGATES)
    )


def _evicting(keyed: Any) -> Any:
    windows = keyed.window(gw.TumblingEventTimeWindows.of("12 seconds"))
    return windows.evictor(gw.CountEvictor.of(1_000)).with_outputs().aggregate(**AGGREGATES)


def _sliding(keyed: Any) -> Any:
    windows = keyed.window(gw.SlidingEventTimeWindows.of("12 seconds", "4 seconds"))
    return windows.with_outputs().aggregate(**AGGREGATES)


def _sessions(keyed: Any) -> Any:
    return (
        keyed.window(gw.EventTimeSessionWindows.with_gap("7 seconds"))
        .with_outputs()
        .aggregate(**AGGREGATES)
    )


KINDS: dict[str, Callable[[Any], Any]] = {
    "tumbling": _tumbling,
    "evicting": _evicting,
    "sliding": _sliding,
    "sessions": _sessions,
}


@examples(60)
@given(st.data())
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", TYPES)
def test_aggregates_are_exact(name: str, kind: str, data: st.DataObject) -> None:
    dtype, values = TYPES[name]
    numbers = data.draw(st.lists(st.one_of(st.none(), values), max_size=24))
    table = table_of(dtype, numbers)
    found = KINDS[kind](gw.stream(table).event_time("ts", STRATEGY).key_by("k")).result()
    for row in found.to_pylist():
        inside = [
            number
            for place, number in enumerate(numbers)
            if place % 3 == row["k"]
            and row["window_start"].timestamp() <= 2 * place < row["window_end"].timestamp()
            and number is not None
        ]
        assert {each: row[each] for each in AGGREGATES} == expected(dtype, inside)
    assert found.schema.field("total").type.scale == getattr(dtype, "scale", 0)
    assert found.schema.field("low").type == logical_type(dtype)
    if kind in ("tumbling", "evicting"):
        assert len(found) == len({(p % 3, 2 * p // 12) for p in range(len(numbers))})


@examples(60)
@given(st.data())
@pytest.mark.parametrize("name", TYPES)
def test_frames_are_exact(name: str, data: st.DataObject) -> None:
    dtype, values = TYPES[name]
    numbers = data.draw(st.lists(st.one_of(st.none(), values), max_size=24))
    over = gw.stream(table_of(dtype, numbers)).event_time("ts", STRATEGY).key_by("k")
    some = {each: AGGREGATES[each] for each in ("total", "mean", "low", "high", "n")}
    found = over.over(gw.Rows(3)).with_outputs().aggregate(**some).result()
    for row in found.to_pylist():
        place = int(row["ts"].timestamp()) // 2
        inside = [n for n in numbers[place % 3 : place + 1 : 3][-4:] if n is not None]
        wanted = expected(dtype, inside)
        assert {each: row[each] for each in some} == {each: wanted[each] for each in some}


@examples(100)
@given(st.lists(decimals(38), max_size=20))
def test_two_words_are_the_value(numbers: list[int]) -> None:
    array = pa.array([Decimal(each) for each in numbers], pa.decimal128(38, 0))
    words = zip(upper_words(array).tolist(), values_of(array).tolist(), strict=True)
    assert [(upper << 64) + lower for upper, lower in words] == numbers


def aggregated(dtype: pa.DataType, numbers: list[int], aggregate: Any) -> Any:
    keyed = gw.stream(table_of(dtype, [*numbers])).event_time("ts", STRATEGY)
    windows = keyed.window_all(gw.TumblingEventTimeWindows.of("1 day"))
    return windows.with_outputs().aggregate(x=aggregate).result()["x"].to_pylist()


@pytest.mark.parametrize("sign", [1, -1])
def test_a_sum_of_more_than_38_digits_is_an_error(sign: int) -> None:
    dtype, most = pa.decimal128(38, 0), 10**38 - 1
    assert aggregated(dtype, [sign * (most - 1), sign], gw.sum("v")) == [Decimal(sign * most)]
    rule = r"a sum of decimals must fit decimal128\(38, 0\), got -?1000000* \(column 'v'\)"
    with pytest.raises(ArithmeticOverflowError, match=rule):
        aggregated(dtype, [sign * most, sign], gw.sum("v"))
    with pytest.raises(ArithmeticOverflowError, match="a sum of decimals must fit"):
        aggregated(dtype, [sign * most] * 9, gw.sum("v"))


def test_a_sum_that_is_too_wide_in_between_is_exact() -> None:
    most = 10**38 - 1
    found = aggregated(pa.decimal128(38, 38), [most, most, -most, -most, 5], gw.sum("v"))
    assert found == [Decimal(5).scaleb(-38)]


def test_a_mean_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(ArithmeticOverflowError, match="a mean of decimals must fit"):
        aggregated(pa.decimal128(38, 2), [10**37], gw.mean("v"))  # of type (38, 6)


TEXTS = ("b", "", "a", "ä", "\U0001f600", "￿", "B", "aa")


@pytest.mark.parametrize("dtype", [pa.string(), pa.large_string(), pa.binary()], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_text_has_the_order_of_its_bytes(dtype: pa.DataType, kind: str) -> None:
    texts = [random.Random(n).choice([*TEXTS, None]) for n in range(200)]
    values = [None if each is None else each.encode() for each in texts]
    column = pa.array(values, pa.binary()).cast(dtype)
    table = table_of(pa.uint64(), [0] * len(values)).set_column(2, "v", column)
    made = {"low": gw.min("v"), "high": gw.max("v"), "of": gw.arg_max("ts", "v")}
    keyed = gw.stream(table).event_time("ts", STRATEGY).key_by("k")
    window = {"sessions": gw.EventTimeSessionWindows.with_gap("7 seconds")}
    windows = keyed.window(window.get(kind, gw.TumblingEventTimeWindows.of("12 seconds")))
    if kind == "evicting":
        windows = windows.evictor(gw.CountEvictor.of(1_000))
    for row in windows.with_outputs().aggregate(**made).result().to_pylist():
        begin, end = (row[each].timestamp() / 2 for each in ("window_start", "window_end"))
        inside = [
            (values[place] or b"", -place)
            for place in range(len(values))
            if place % 3 == row["k"] and begin <= place < end and values[place] is not None
        ]
        found = [row[each] for each in ("low", "high")]
        found = [each.encode() if isinstance(each, str) else each for each in found]
        assert found == ([min(inside)[0], max(inside)[0]] if inside else [None, None])
        if inside:
            assert row["of"].timestamp() == -2 * max(inside)[1]


def test_quantiles_of_decimals_are_floats() -> None:
    table = table_of(pa.decimal128(30, 2), [100, 200, 350, None])
    windows = gw.stream(table).event_time("ts", STRATEGY)
    all_of = windows.window_all(gw.TumblingEventTimeWindows.of("1 day"))
    assert all_of.with_outputs().aggregate(m=gw.median("v")).result()["m"].to_pylist() == [2.0]


def test_decimals_beyond_38_digits_are_refused() -> None:
    table = pa.table({"v": pa.array([Decimal(1)], pa.decimal256(50, 0))})
    table = table.append_column("ts", pa.array([0], pa.timestamp("us", "UTC")))
    windows = gw.stream(table).event_time("ts", STRATEGY)
    all_of = windows.window_all(gw.TumblingEventTimeWindows.of("1 day"))
    for aggregate in (gw.sum("v"), gw.mean("v"), gw.max("v"), gw.median("v")):
        with pytest.raises(UnsupportedAggregateError, match="up to 38 digits"):
            all_of.with_outputs().aggregate(x=aggregate)
