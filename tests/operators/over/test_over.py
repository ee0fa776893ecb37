"""Aggregates over frames of bounded input, against the reference operator."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given

import gpu_windows as gw
from gpu_windows.errors import (
    InvalidDurationError,
    InvalidFrameError,
    NameClashError,
    QueryError,
    UnsupportedAggregateError,
    UnsupportedQueryError,
)
from tests.examples import examples
from tests.operators.over.queries import (
    AGGREGATES,
    WATERMARKS,
    Case,
    assert_same,
    cases,
    range_of,
    result,
    rows_of,
)

ROWS = rows_of(1, 50)
KEYED = gw.stream(ROWS).event_time("ts", WATERMARKS).key_by("k")


@examples(150)
@given(cases())
def test_kernels_are_the_reference(case: Case) -> None:
    assert_same(result(case), result(case, "reference"))


@pytest.mark.parametrize("name", AGGREGATES)
@pytest.mark.parametrize(
    "frame", [range_of(30), gw.Rows(3), range_of(None), gw.Rows(2, 2), range_of(-5, 20)], ids=str
)
def test_every_aggregate(name: str, frame: gw.typing.Frame) -> None:
    case = Case(rows_of(7, 400, keys=2, ticks=900), {name: AGGREGATES[name].over(frame)})
    assert_same(result(case), result(case, "reference"))


@pytest.mark.thorough
def test_many_rows_in_threads() -> None:
    made = {n: AGGREGATES[n].over(range_of(50)) for n in ("n", "total", "least", "last")}
    case = Case(rows_of(3, 600_000, keys=50, ticks=200_000), made)
    alone, together = result(case, threads=1), result(case, threads=2)
    assert_same(alone, together)
    assert len(alone) == 600_000


def test_results_are_rows_with_their_time_in_order() -> None:
    found = KEYED.over(range_of(10)).aggregate(n=gw.count(), seen=gw.max("i"))
    assert found.column_names == ["k", "ts", "i", "x", "b", "d", "seq", "n", "seen"]
    assert found.schema.field("ts").type == pa.timestamp("us", "UTC")
    times = found.column("ts").to_pylist()
    assert times == sorted(times)


def test_what_is_not_used_comes_back() -> None:
    times = pa.array([None, 5, (1 << 63) - 1], pa.int64())
    rows = pa.table({"k": ["a"] * 3, "ts": times, "v": [1, 2, 3]})
    outputs = (
        gw.stream(rows)
        .event_time("ts", WATERMARKS)
        .key_by("k")
        .over(gw.Range("1 second"))
        .with_outputs()
        .aggregate(total=gw.sum("v"))
    )
    assert outputs.result().to_pylist() == [{"k": "a", "ts": 5, "v": 2, "total": 2}]
    reasons = outputs.rejected().column("rejection_reason").to_pylist()
    assert reasons == ["null_timestamp", "out_of_range_timestamp"]
    counted = outputs.metrics().to_pylist()[0]
    assert (counted["rows"], counted["null_timestamp"], counted["fired"]) == (3, 1, 1)


def test_no_rows() -> None:
    found = gw.stream(ROWS.slice(0, 0)).event_time("ts", WATERMARKS).key_by("k")
    assert len(found.over(gw.Rows(1)).aggregate(n=gw.count())) == 0


def test_bad_frames() -> None:
    with pytest.raises(InvalidFrameError, match=r"must not end before it begins .*got 5 PRECEDING"):
        gw.Rows(5, -6)
    with pytest.raises(InvalidFrameError, match="1 min FOLLOWING to 30 s FOLLOWING"):
        gw.Range("-1 minute", "30 seconds")
    with pytest.raises(InvalidFrameError, match="whole number"):
        gw.Rows(1.5)  # type: ignore[arg-type]
    with pytest.raises(InvalidFrameError, match="whole number"):
        gw.Rows(True)
    with pytest.raises(InvalidFrameError, match="64 bits"):
        gw.Rows(1 << 63)
    with pytest.raises(InvalidDurationError):
        gw.Range("soon")
    with pytest.raises(InvalidFrameError, match="lag takes a positive number"):
        gw.lag("i", 0)
    with pytest.raises(InvalidFrameError, match="over takes a frame"):
        KEYED.over("1 minute")  # type: ignore[arg-type]


def test_nothing_runs_frames_row_at_a_time() -> None:
    over = KEYED.over(gw.Rows(1)).options(engine="reference")
    with pytest.raises(UnsupportedQueryError, match="engine='reference' is not possible"):
        over.aggregate(n=gw.count())


def test_bad_queries() -> None:
    over = KEYED.over(gw.Rows(1))
    with pytest.raises(QueryError, match="at least one aggregate"):
        over.aggregate()
    with pytest.raises(QueryError, match="n needs a frame"):
        KEYED.over().aggregate(n=gw.count())
    with pytest.raises(UnsupportedAggregateError, match="not supported over frames"):
        over.aggregate(m=gw.median("i"))
    with pytest.raises(NameClashError):
        over.aggregate(i=gw.sum("i"))
    with pytest.raises(QueryError, match="must be an aggregate"):
        over.aggregate(n=3)  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="frame must leave times"):
        KEYED.over(range_of((1 << 62) + 1)).aggregate(n=gw.count())


def test_it_is_explained() -> None:
    told = (
        KEYED.over(gw.Range("1 minute"))
        .with_outputs()
        .aggregate(n=gw.count(), before=gw.lag("i"))
        .explain()
    )
    assert "n = count(*) OVER RANGE BETWEEN 1 min PRECEDING AND CURRENT ROW" in told
    assert "before = first(i) OVER ROWS BETWEEN 1 PRECEDING AND 1 PRECEDING" in told


@pytest.mark.slow
def test_texts_of_more_than_two_gibibytes_are_carried() -> None:
    one = pa.array(["x" * (1 << 20)] * 300)
    chunks = pa.chunked_array([one] * 8)
    times = pa.array(range(len(chunks), 0, -1), pa.int64())
    rows = pa.table({"k": pa.array([1] * len(chunks)), "ts": times, "s": chunks})
    keyed = gw.stream(rows).event_time("ts", WATERMARKS).key_by("k")
    found = keyed.over(range_of(5)).aggregate(["s"], n=gw.count())
    assert found.column("ts").to_pylist() == sorted(times.to_pylist())
    assert found.column("n").to_pylist()[:7] == [1, 2, 3, 4, 5, 6, 6]


def test_names_and_functions_that_mean_something_else() -> None:
    with pytest.raises(InvalidFrameError, match="has a frame already"):
        gw.lag("i").over(gw.Rows(3))
    with pytest.raises(InvalidFrameError, match="lag takes a column"):
        gw.lag(None)  # type: ignore[arg-type]
    with pytest.raises(InvalidFrameError, match="over takes a frame"):
        gw.typing.Framed(gw.count(), "1 minute")  # type: ignore[arg-type]
    with pytest.raises(UnsupportedAggregateError, match="not for windows"):
        KEYED.window(gw.TumblingEventTimeWindows.of("1 s")).aggregate(r=gw.typing.Aggregate("rank"))
    with pytest.raises(QueryError, match="over a frame"):
        KEYED.window(gw.TumblingEventTimeWindows.of("1 s")).aggregate(r=gw.lag("i"))  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="aggregates are named"):
        KEYED.over(gw.Rows(1)).aggregate(gw.sum("i"))  # type: ignore[arg-type]
    with pytest.raises(NameClashError, match="columns of the row and aggregates"):
        KEYED.over(gw.Rows(1)).aggregate(i=gw.sum("i"))
    renamed = ROWS.rename_columns(["k", "ts", "i", "x", "b", "d", "__number"])
    with pytest.raises(QueryError, match="__number"):
        gw.stream(renamed).event_time("ts", WATERMARKS).key_by("k").over(gw.Rows(1)).aggregate(
            n=gw.count()
        )
