"""Results of bounded inputs that are distinct, sorted and limited."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from functools import cmp_to_key
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_windows as gw
from gpu_windows.errors import (
    ColumnNotFoundError,
    ColumnTypeError,
    InvalidOptionError,
    QueryError,
    UnsupportedQueryError,
)
from tests.examples import examples

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAN = float("nan")
FLOATS = st.none() | st.sampled_from([-1.5, -0.0, 0.0, 2.0, NAN, float("inf")])
ROWS = st.lists(
    st.tuples(st.none() | st.integers(-2, 2), FLOATS, st.none() | st.sampled_from(["", "a", "ä"])),
    max_size=12,
)


def table(rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [(), (), ()]
    types = (pa.int64(), pa.float64(), pa.string())
    arrays = [pa.array(values, dtype) for values, dtype in zip(columns, types, strict=True)]
    return pa.table(dict(zip("nft", arrays, strict=True)))


def compare(one: Any, other: Any) -> int:
    """Compare values that are not null: NaN is the greatest, -0.0 equals 0.0."""
    left, right = (isinstance(each, float) and math.isnan(each) for each in (one, other))
    if left or right:
        return int(left) - int(right)
    return int(one > other) - int(one < other)


def sort(rows: list[Any], keys: list[tuple[int, bool, bool]]) -> list[Any]:
    """Sort rows as the definition says: a key is a position, whether it descends, nulls first."""

    def order(one: Any, other: Any) -> int:
        for at, down, first in keys:
            null = (one[at] is None) - (other[at] is None)
            if null:
                return -null if first else null
            found = 0 if one[at] is None else compare(one[at], other[at])
            if found:
                return -found if down else found
        return 0

    return sorted(rows, key=cmp_to_key(order))


KEYS = st.lists(
    st.tuples(st.integers(0, 2), st.booleans(), st.booleans()),
    min_size=1, max_size=3, unique_by=lambda key: key[0],
)  # fmt: skip


@given(rows=ROWS, keys=KEYS, limit=st.none() | st.integers(0, 9), offset=st.integers(0, 5))
@examples(150)
def test_results_are_sorted_as_a_comparison_of_rows(
    rows: list[Any], keys: list[Any], limit: int | None, offset: int
) -> None:
    found = gw.stream(table(rows)).select().order_by(
        *("nft"[at] for at, *_ in keys), descending=[down for _, down, _ in keys],
        nulls_first=[first for *_, first in keys],
    ).limit(limit, offset).result()  # fmt: skip
    wanted = sort(rows, keys)[offset:][:limit]
    assert str([tuple(row.values()) for row in found.to_pylist()]) == str(wanted)


@given(rows=ROWS)
@examples(100)
def test_distinct_results_are_the_first_of_equal_ones(rows: list[Any]) -> None:
    """0.0 is -0.0, NaN is NaN, and null is null."""
    found = gw.stream(table(rows)).select().distinct().result()
    wanted: dict[Any, Any] = {}
    for n, f, t in rows:
        key = (n, "nan" if f is not None and math.isnan(f) else f, t)
        wanted.setdefault(key, (n, f, t))
    assert str([tuple(row.values()) for row in found.to_pylist()]) == str([*wanted.values()])


def test_nulls_are_less_than_any_value_unless_said() -> None:
    values = gw.stream(pa.table({"d": pa.array([Decimal("2.5"), None, Decimal(-1)])})).select()
    for more, wanted in (
        ({}, [None, -1, Decimal("2.5")]),
        ({"descending": True}, [Decimal("2.5"), -1, None]),
        ({"nulls_first": False}, [-1, Decimal("2.5"), None]),
        ({"descending": [True], "nulls_first": [True]}, [None, Decimal("2.5"), -1]),
    ):
        assert values.order_by("d", **more).result()["d"].to_pylist() == wanted


def test_results_of_windows_are_arranged_and_written(tmp_path: Path) -> None:
    rows = pa.table({"k": [*"abcab"], "ts": [0, 1, 2, 3, 4]})
    in_order = gw.WatermarkStrategy.for_monotonous_timestamps()
    keyed = gw.stream(rows).event_time("ts", in_order).key_by("k")
    windows = keyed.window(gw.TumblingEventTimeWindows.of("1 hour")).with_outputs()
    outputs = windows.aggregate(n=gw.count()).order_by("n", "k", descending=[True, False])
    two = outputs.select("k", "n").limit(2)
    assert two.result().to_pylist() == [{"k": "a", "n": 2}, {"k": "b", "n": 2}]
    assert outputs.select("n").distinct().result().to_pylist() == [{"n": 2}, {"n": 1}]
    assert two.write_parquet(tmp_path / "out").rows == 2
    assert outputs.limit(1, offset=5).result().num_rows == 0


def test_windows_over_some_results_and_over_distinct_ones() -> None:
    in_order = gw.WatermarkStrategy.for_monotonous_timestamps()
    rows = pa.table({"k": [*"aab"], "ts": [5, 5, 2]})
    timed = gw.stream(rows).event_time("ts", in_order)

    def count(outputs: gw.typing.Outputs) -> int:
        hours = gw.stream_results(outputs).window_all(gw.TumblingEventTimeWindows.of("1 hour"))
        return int(hours.aggregate(n=gw.count())["n"][0].as_py())

    assert count(timed.select("k").order_by("k").limit(2)) == 2
    assert count(timed.select("k", "ts").distinct()) == 2
    assert count(timed.select().select("ts").distinct()) == 2
    for outputs in (timed.select("k"), timed.select().select("k")):
        with pytest.raises(UnsupportedQueryError, match="only if ts is one of them"):
            gw.stream_results(outputs.distinct())


def test_what_is_refused() -> None:
    outputs = gw.stream(pa.table({"a": [1], "l": [[1]]})).select()
    cases: list[tuple[Callable[[], Any], type[Exception], str]] = [
        (lambda: outputs.order_by(), QueryError, "at least one column"),
        (lambda: outputs.order_by(["a"]), QueryError, "one by one"),  # type: ignore[arg-type]
        (lambda: outputs.order_by("b"), ColumnNotFoundError, "no such column"),
        (lambda: outputs.order_by("a", "A"), QueryError, "sorts results once"),
        (lambda: outputs.order_by("l"), ColumnTypeError, "sorted by numbers"),
        (lambda: outputs.order_by("a", descending=[True, False]), QueryError, "for each of 1"),
        (lambda: outputs.order_by("a", nulls_first=[1]), QueryError, "true or false"),  # type: ignore[list-item]
        (lambda: outputs.distinct(), ColumnTypeError, "simple type"),
        (lambda: outputs.limit(-1), InvalidOptionError, "count must be 0 or more"),
        (lambda: outputs.limit(1, offset=-1), InvalidOptionError, "offset must be 0 or more"),
        (lambda: outputs.limit(1.5), InvalidOptionError, "count must be"),  # type: ignore[arg-type]
    ]
    for wrong, error, rule in cases:
        with pytest.raises(error, match=rule):
            wrong()


def test_dataframes_are_arranged_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    rows = [(1, NAN, "b"), (None, None, "a"), (1, NAN, "b"), (2, 0.0, None), (2, -0.0, None)]
    outputs = gw.stream(spark.createDataFrame(table(rows))).select()
    local = gw.stream(table(rows)).select()
    arrangements: list[Callable[[Any], Any]] = [
        lambda some: some.order_by("f", "t", "n", descending=[True, False, True]).limit(3),
        lambda some: some.order_by("t", "n", nulls_first=False).select("n").limit(2, offset=1),
        lambda some: some.select("n", "t").distinct().order_by("n", descending=True),
        lambda some: some.order_by("n").limit(None, offset=3).select("n"),
    ]
    for arranged in arrangements:
        found = arranged(outputs).result().toArrow().to_pylist()
        assert str(found) == str(arranged(local).result().to_pylist())
    written = outputs.order_by("n").limit(2)
    assert written.write_parquet(tmp_path / "out").rows == 2
    assert (
        "depend on those of all tasks"
        in gw.stream(spark.createDataFrame(table(rows)))
        .key_by("n")
        .count_window(1)
        .with_outputs()
        .aggregate(c=gw.count())
        .limit(1)
        .explain()
    )
    with pytest.raises(QueryError, match="nosuch"):
        outputs.order_by("nosuch")
    arriving = gw.stream(spark.readStream.format("rate").load()).select()
    refusals: list[Callable[[], Any]] = [
        lambda: arriving.limit(3),
        lambda: arriving.distinct(),
        lambda: arriving.order_by("value"),
    ]
    for refused in refusals:
        with pytest.raises(UnsupportedQueryError, match="results of a stream never end"):
            refused()
