"""The keys of a window whose results come first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_windows as gw
from gpu_windows.errors import ColumnNotFoundError, ColumnTypeError, NameClashError, QueryError
from gpu_windows.planning.kinds.window import WINDOW_END, WINDOW_START
from tests.examples import examples

SECOND = 1_000_000
MONOTONOUS = gw.WatermarkStrategy.for_monotonous_timestamps()
TEN = gw.TumblingEventTimeWindows.of("10 seconds")
ASSIGNERS = [
    TEN,
    gw.SlidingEventTimeWindows.of("10 seconds", "4 seconds"),
    gw.CumulativeEventTimeWindows.of("20 seconds", "5 seconds"),
]
rows = st.lists(
    st.tuples(
        st.sampled_from([None, "a", "b", "c", "d"]),
        st.integers(-30, 30),
        st.one_of(st.none(), st.integers(-3, 3)),
    ),
    max_size=40,
)


def windowed(
    table: Sequence[tuple[str | None, int, int | None]], assigner: Any = TEN, **options: Any
) -> gw.typing.WindowedStream:
    keys, times, values = zip(*table, strict=True) if table else ((), (), ())
    made = pa.table(
        {
            "k": pa.array(keys, pa.string()),
            "ts": pa.array([at * SECOND for at in times], pa.timestamp("us", "UTC")),
            "v": pa.array(values, pa.int64()),
        }
    )
    keyed = gw.stream(made).event_time("ts", MONOTONOUS).key_by("k")
    return keyed.window(assigner).options(**{"device": "cpu", **options})


ROWS = [("a", 1, 1), ("b", 1, 5), ("a", 2, 1), ("c", 3, 2), ("c", 4, 2), ("b", 15, 9)]


@examples(60)
@given(
    rows, st.sampled_from(ASSIGNERS), st.integers(1, 3), st.booleans(),
    st.sampled_from(["auto", "reference"]),
)  # fmt: skip
def test_it_is_the_beginning_of_the_sorted_results(
    table: Any, assigner: Any, count: int, down: bool, engine: Any
) -> None:
    of = windowed(table, assigner, engine=engine)
    aggregates = {"n": gw.count(), "total": gw.sum("v")}
    kept = of.top_keys(count, ["total", "n"], descending=[down, True]).aggregate(**aggregates)
    windows: dict[Any, list[dict[str, Any]]] = {}
    for row in of.aggregate(**aggregates).to_pylist():
        windows.setdefault((row[WINDOW_END], row[WINDOW_START]), []).append(row)

    def place(row: dict[str, Any]) -> Any:
        total = -1_000 if row["total"] is None else row["total"]
        return (-total if down else total, -row["n"], "" if row["k"] is None else row["k"])

    wanted = [
        {**row, "row_number": number}
        for window in sorted(windows)
        for number, row in enumerate(sorted(windows[window], key=place)[:count], 1)
    ]
    assert kept.to_pylist() == wanted


def test_lesser_keys_are_first_among_equals() -> None:
    found = windowed(ROWS).top_keys(2, "n", number="place").aggregate(n=gw.count())
    assert found.column_names == ["k", WINDOW_START, WINDOW_END, "n", "place"]
    assert [(row["k"], row["n"], row["place"]) for row in found.to_pylist()] == [
        ("a", 2, 1), ("c", 2, 2), ("b", 1, 1),
    ]  # fmt: skip


class Twice(gw.functions.ProcessWindowFunction):
    """Two results for a window."""

    def process(self, key: Any, context: Any, rows: pa.Table) -> list[dict[str, object]]:
        return [{"x": 1}, {"x": 2}]


def test_keys_have_one_result_each() -> None:
    of = windowed(ROWS).top_keys(1, "k")
    assert of.collect_lists("v")["v"].to_pylist() == [[2, 2], [9]]
    for several in (
        lambda: of.with_outputs().top(1, "v", number="of_key"),
        lambda: of.process(Twice(), ["v"], output=pa.schema([("x", pa.int64())])),
    ):
        with pytest.raises(QueryError, match="one result of each key"):
            several()
    together = gw.stream(pa.table({"ts": pa.array([1], pa.timestamp("us", "UTC"))}))
    timed = together.event_time("ts", MONOTONOUS)
    with pytest.raises(QueryError, match="of all rows there is one result"):
        timed.window_all(TEN).top_keys(1, "n").aggregate(n=gw.count())


@examples(40)
@given(rows, st.sampled_from(ASSIGNERS), st.integers(1, 2))
def test_categories_are_ranked_apart(table: Any, assigner: Any, count: int) -> None:
    of = windowed(table, assigner)
    aggregates = {"n": gw.count(), "kind": gw.max("v")}
    kept = of.top_keys(count, "n", per="kind").aggregate(**aggregates)
    categories: dict[Any, list[dict[str, Any]]] = {}
    for row in of.aggregate(**aggregates).to_pylist():
        kind = -9 if row["kind"] is None else row["kind"]
        at = (row[WINDOW_END], row[WINDOW_START], kind)
        categories.setdefault(at, []).append(row)
    wanted = [
        {**row, "row_number": number}
        for each in sorted(categories)
        for number, row in enumerate(
            sorted(categories[each], key=lambda row: (-row["n"], row["k"] or ""))[:count], 1
        )
    ]
    assert kept.to_pylist() == wanted


def test_a_category_is_a_key_or_a_result() -> None:
    with pytest.raises(ColumnNotFoundError, match=r"has categories \(per\) by keys and results"):
        windowed(ROWS).top_keys(1, "n", per="v").aggregate(n=gw.count())
    told = (
        windowed(ROWS).top_keys(2, "n", per=["k"]).with_outputs().aggregate(n=gw.count()).explain()
    )
    assert "the first 2 keys of a window, k by n descending" in told


def test_keys_that_are_structs_are_no_order_but_may_be_ranked() -> None:
    table = pa.table(
        {
            "k": pa.array([{"x": 1}, {"x": 2}, {"x": 2}]),
            "ts": pa.array([SECOND] * 3, pa.timestamp("us", "UTC")),
        }
    )
    keyed = gw.stream(table).event_time("ts", MONOTONOUS).key_by("k")
    found = keyed.window(TEN).top_keys(1, "n").aggregate(n=gw.count())
    assert found["k"].to_pylist() == [{"x": 2}]
    with pytest.raises(ColumnTypeError, match="rows are ordered by numbers"):
        keyed.window(TEN).top_keys(1, "k").aggregate(n=gw.count())


def test_the_plan_tells_it() -> None:
    text = (
        windowed(ROWS)
        .top_keys(3, ["n", "k"], descending=[True, False])
        .with_outputs()
        .aggregate(n=gw.count())
        .explain()
    )
    assert "ranking   the first 3 keys of a window by n descending, k" in text


def test_misuse_is_told() -> None:
    of = windowed(ROWS)
    with pytest.raises(QueryError, match="an integer of at least 1"):
        of.top_keys(0, "n")
    with pytest.raises(QueryError, match="descending is a bool, or one for each"):
        of.top_keys(1, "n", descending=[True, False])
    with pytest.raises(ColumnNotFoundError, match="orders by keys and results: k, n"):
        of.top_keys(1, "v").aggregate(n=gw.count())
    with pytest.raises(ColumnTypeError, match="rows are ordered by numbers"):
        of.top_keys(1, "l").aggregate(l=gw.collect_list("v"))
    with pytest.raises(NameClashError):
        of.top_keys(1, "n", number="k").aggregate(n=gw.count())
    with pytest.raises(QueryError, match="number is the name of a result column"):
        of.top_keys(1, "n", number=None)  # type: ignore[arg-type]
    with pytest.raises(NameClashError, match="used inside"):
        of.top_keys(1, "n", number="__slice").aggregate(n=gw.count())
    with pytest.raises(QueryError, match="fire once, at their end"):
        of.trigger(gw.CountTrigger.of(2)).top_keys(1, "n").aggregate(n=gw.count())
    sessions = windowed(ROWS, gw.EventTimeSessionWindows.with_gap("1 second"))
    with pytest.raises(QueryError, match="windows that all keys share"):
        sessions.top_keys(1, "n").aggregate(n=gw.count())
    with pytest.raises(QueryError, match="without allowed lateness"):
        of.allowed_lateness("1 second").top_keys(1, "n").aggregate(n=gw.count())
