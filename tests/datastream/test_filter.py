"""Aggregates over the rows only of which a condition is true."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import (
    ColumnNotFoundError,
    ColumnTypeError,
    InvalidFrameError,
    QueryError,
    UnsupportedAggregateError,
)

pytest.importorskip("datasketches", reason="no wheels for Python 3.14; of the extra `sketches`")

SECOND = 1_000_000
ROWS = pa.table(
    {
        "k": ["a", "a", "a", "b", "a"],
        "ts": pa.array([SECOND * at for at in (1, 2, 3, 3, 15)], pa.timestamp("us", "UTC")),
        "v": pa.array([1, 2**62, None, 4, 5], pa.int64()),
        "f": [1.5, float("nan"), 2.5, 0.0, 1.0],
        "big": pa.array([False, True, True, None, False]),
        "n": [1, 2, 3, 4, 5],
    }
)
EVERY: dict[str, gw.typing.Aggregate] = {
    "rows": gw.count(),
    "known": gw.count("v"),
    "total": gw.sum("v"),
    "mean": gw.mean("f"),
    "least": gw.min("f"),
    "dev": gw.stddev("f", ddof=0),
    "first": gw.first("v"),
    "last": gw.last("v", ignore_nulls=True),
    "at_least": gw.arg_min("v", "n"),
    "every": gw.bool_and("big"),
    "listed": gw.collect_list("n"),
    "different": gw.count_distinct("f"),
    "middle": gw.median("n"),
    "about": gw.approx_count_distinct("n"),
    "low": gw.approx_quantile("n", 0.1),
}
MONOTONOUS = gw.WatermarkStrategy.for_monotonous_timestamps()


def keyed(rows: pa.Table = ROWS) -> gw.typing.KeyedStream:
    return gw.stream(rows).event_time("ts", MONOTONOUS).key_by("k")


def tumbling(rows: pa.Table = ROWS, **options: Any) -> gw.typing.WindowedStream:
    windowed = keyed(rows).window(gw.TumblingEventTimeWindows.of("10 seconds"))
    return windowed.options(device="cpu", **options)


@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize("name", EVERY)
def test_it_is_the_aggregate_of_the_rows_that_count(name: str, engine: Any) -> None:
    wanted = tumbling(ROWS.filter(pa.compute.field("big")), engine=engine).aggregate(x=EVERY[name])
    found = tumbling(engine=engine).aggregate(x=EVERY[name].filter("big"))
    assert found.num_rows == 3  # windows are made of all rows
    (of_a,) = [row for row in found.to_pylist() if row["k"] == "a" and row["x"] not in NOTHING]
    assert repr(of_a["x"]) == repr(wanted["x"][0].as_py())
    others = {repr(row["x"]) for row in found.to_pylist() if row is not of_a} - {repr(of_a["x"])}
    assert others <= {repr(nothing) for nothing in NOTHING}


#: What aggregates are of no row.
NOTHING: tuple[Any, ...] = (None, 0, [])


def test_conditions_differ_by_aggregate() -> None:
    rows = ROWS.append_column("small", pa.array([True, False, False, True, None]))
    found = tumbling(rows).aggregate(
        n=gw.count(), big=gw.count().filter("big"), small=gw.count().filter("small"),
        total=gw.sum("n"), of_small=gw.sum("n").filter("small"),
    )  # fmt: skip
    assert found.drop_columns(["window_start", "window_end"]).to_pylist() == [
        {"k": "a", "n": 3, "big": 2, "small": 1, "total": 6, "of_small": 1},
        {"k": "b", "n": 1, "big": 0, "small": 1, "total": 4, "of_small": 4},
        {"k": "a", "n": 1, "big": 0, "small": 0, "total": 5, "of_small": None},
    ]


def test_a_row_that_does_not_count_cannot_overflow() -> None:
    rows = pa.table(
        {"k": ["a"] * 3, "ts": ROWS["ts"][:3], "v": [2**62] * 3, "b": [True, False, False]}
    )
    assert tumbling(rows).aggregate(x=gw.sum("v").filter("b"))["x"].to_pylist() == [2**62]


def test_over_frames() -> None:
    over = keyed().over(gw.Range("1 second"))
    found = over.aggregate(["n"], x=gw.sum("n").filter("big"), first=gw.first("n").filter("big"))
    assert {row["n"]: (row["x"], row["first"]) for row in found.to_pylist()} == {
        1: (None, None), 2: (2, 2), 3: (5, 2), 4: (None, None), 5: (None, None),
    }  # fmt: skip


def test_joined_windows() -> None:
    window = gw.TumblingEventTimeWindows.of("10 seconds")
    joined = keyed().co_group(keyed()).window(window)
    found = joined.aggregate(left={"n": gw.count().filter("big")}, right={"m": gw.sum("n")})
    assert [(row["n"], row["m"]) for row in found.to_pylist()] == [(2, 6), (0, 4), (0, 5)]


def test_the_plan_tells_it() -> None:
    text = tumbling().with_outputs().aggregate(x=gw.sum("v").filter("big")).explain()
    assert "sum(v) FILTER (WHERE big)" in text


def test_misuse_is_told() -> None:
    with pytest.raises(
        UnsupportedAggregateError, match="condition of sum must be a column of bool"
    ):
        tumbling().aggregate(x=gw.sum("v").filter("n"))
    with pytest.raises(ColumnNotFoundError, match="bigger"):
        tumbling().aggregate(x=gw.sum("v").filter("bigger"))
    with pytest.raises(QueryError, match="count has a condition already"):
        gw.count().filter("big").filter("big")
    with pytest.raises(InvalidFrameError, match="comes before the frame"):
        gw.count().over(gw.Rows(3)).filter("big")
    with pytest.raises(InvalidFrameError, match="comes before the frame"):
        gw.lag("v").filter("big")
    for wrong in (None, 3, pa.compute.field("big")):
        with pytest.raises((QueryError, ColumnTypeError)):
            tumbling().aggregate(x=gw.sum("v").filter(wrong))  # type: ignore[arg-type]
