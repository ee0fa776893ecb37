"""Aggregates over windows of several lengths that end together."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_windows as gw
from gpu_windows.errors import (
    GpuWindowsError,
    InvalidFrameError,
    InvalidWindowError,
    QueryError,
    UnsupportedAggregateError,
)
from gpu_windows.operators.build import build_operator
from gpu_windows.operators.slices import operator as slices_operator
from gpu_windows.planning.kinds.window import WINDOW_END, WindowQuery
from gpu_windows.planning.planner import plan
from gpu_windows.rules import LONG_MAX
from gpu_windows.runners.local import batches_for, run
from gpu_windows.vocabulary.windows import MultiLengthEventTimeWindows, SlidingEventTimeWindows
from tests.examples import examples
from tests.planning.queries import AGGREGATES, MORE, query, tables

SOME = ["sum_i", "mean_d", "min_f", "dev_i", "last_text", "at_last_min"]
EVERY = {name: AGGREGATES[name] for name in SOME} | MORE
MONOTONOUS = gw.WatermarkStrategy.for_monotonous_timestamps()
LENGTHS = gw.MultiLengthEventTimeWindows.of("10 seconds", "30 seconds", "2 minutes")


def rows(made: WindowQuery, table: pa.Table) -> dict[Any, dict[str, Any]]:
    """Return the results by key and end of window; floats to nine digits."""
    return {
        (row["key"], row["part"], row[WINDOW_END]): {name: _plain(row[name]) for name in row}
        for row in run(plan(made, bounded=True), table).results.to_pylist()
    }


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else float(f"{value:.9g}") + 0.0
    return value


@examples(40)
@given(tables(exact=True), st.integers(1, 9), st.lists(st.integers(1, 7), min_size=1, max_size=3),
       st.integers(-3, 3), st.booleans())  # fmt: skip
def test_each_length_is_a_sliding_window_of_its_own(
    table: pa.Table, slide: int, spans: list[int], offset: int, changed: bool
) -> None:
    offset = max(min(offset, slide - 1), 1 - slide)
    longest, lengths = slide * max(spans), {slide * span for span in spans}
    among = {
        f"{name} {length}": replace(aggregate, recent=length)
        for name, aggregate in EVERY.items()
        for length in lengths
    }
    windows = SlidingEventTimeWindows(longest, slide, offset)
    found = rows(query(windows, aggregates=among, changed_only=changed), table)
    one = {
        length: rows(query(SlidingEventTimeWindows(length, slide, offset), aggregates=EVERY), table)
        for length in {*lengths, longest, slide}
    }
    assert found.keys() == one[slide if changed else longest].keys()
    for at, row in found.items():
        for length in lengths:
            alone = one[length].get(at)
            for name, aggregate in EVERY.items():
                nothing = 0 if aggregate.function == "count" else None
                wanted = nothing if alone is None else alone[name]
                assert row[f"{name} {length}"] == wanted, (at, name, length)


@examples(40)
@given(tables(exact=True), st.integers(1, 9), st.integers(1, 7), st.booleans())
def test_kernels_do_what_the_reference_does(
    table: pa.Table, slide: int, slides: int, changed: bool
) -> None:
    among = {
        name: replace(aggregate, recent=slide * (1 + number % slides))
        for number, (name, aggregate) in enumerate((AGGREGATES | MORE).items())
    }
    made = query(
        SlidingEventTimeWindows(slide * slides, slide), aggregates=among, changed_only=changed
    )
    slow = replace(made, options=replace(made.options, engine="reference"))
    assert rows(made, table) == rows(slow, table)


@pytest.mark.parametrize("changed", [False, True])
def test_emissions_do_not_matter(monkeypatch: pytest.MonkeyPatch, changed: bool) -> None:
    def found() -> pa.Table:
        of = windowed()
        made = (of.changed_keys() if changed else of).aggregate(n=gw.count(), least=gw.min("v"))
        return made.sort_by([("k", "ascending"), (WINDOW_END, "ascending")])

    whole = found()
    monkeypatch.setattr(slices_operator, "EMISSION_WINDOWS", 3)  # for three lengths: one at a time
    assert found() == whole


class Seen(gw.functions.ProcessWindowFunction):
    def process(self, key: Any, context: Any, rows: pa.Table) -> list[dict[str, Any]]:
        return [{"n": rows["n"][0].as_py()}]


def windowed(assigner: Any = LENGTHS, **options: Any) -> gw.typing.WindowedStream:
    times = pa.array([1_000_000, 12_000_000, 45_000_000], pa.timestamp("us", "UTC"))
    table = pa.table({"k": ["a", "a", "b"], "ts": times, "v": [1, 2, 4], "is_new": [True] * 3})
    keyed = gw.stream(table).event_time("ts", MONOTONOUS).key_by("k")
    return keyed.window(assigner).options(**{"device": "cpu", **options})


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_every_aggregate_is_named_by_its_lengths(engine: Any) -> None:
    made = windowed(engine=engine).changed_keys().aggregate(n=gw.count(), total=gw.sum("v"))
    found = made.sort_by(WINDOW_END).drop_columns(["window_start"]).to_pylist()
    seconds = [int(row.pop(WINDOW_END).timestamp()) for row in found]
    assert seconds == [10, 20, 50]
    names = ["k", "n_10s", "n_30s", "n_2m", "total_10s", "total_30s", "total_2m"]
    assert found == [
        dict(zip(names, values, strict=True))
        for values in (("a", 1, 1, 1, 1, 1, 1), ("a", 1, 2, 2, 2, 3, 3), ("b", 1, 1, 1, 4, 4, 4))
    ]


def test_without_changes_a_window_fires_as_long_as_it_holds_a_row() -> None:
    found = windowed().aggregate(n=gw.count(), least=gw.min("v")).to_pylist()
    assert len(found) == 13 + 12
    last = max((row for row in found if row["k"] == "b"), key=lambda row: row[WINDOW_END])
    assert (last["n_10s"], last["n_2m"], last["least_10s"], last["least_2m"]) == (0, 1, None, 4)


def test_changed_keys_cost_what_changed_however_long_windows_are() -> None:
    """All windows that hold the rows would be some hundred emissions."""
    rows = 20_000
    seconds = pa.array([at * 10_000_000 for at in range(rows)], pa.timestamp("us", "UTC"))
    table = pa.table({"k": [*range(rows)], "ts": seconds})
    keyed = gw.stream(table).event_time("ts", MONOTONOUS).key_by("k")
    day = gw.SlidingEventTimeWindows.of("1 day", "1 second")
    planned = keyed.window(day).changed_keys().with_outputs().aggregate(n=gw.count()).plan
    operator = build_operator(planned, device="cpu")
    for batch in batches_for(planned, table):
        assert not any(len(each.results) for each in operator.process(batch))
    fired = [len(each.results) for each in operator.advance_watermark(LONG_MAX)]
    assert fired == [rows]


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_a_row_too_late_for_its_last_slide_is_given_back(engine: Any) -> None:
    """Of changed keys it would make no window fire, though longer ones that hold it are to come."""
    times = pa.array([25, 12, 24], pa.timestamp("s", "UTC")).cast(pa.timestamp("us", "UTC"))
    rows = pa.table({"k": ["a", "b", "b"], "ts": times})
    keyed = gw.stream(rows).event_time("ts", MONOTONOUS).key_by("k")
    windows = keyed.window(gw.MultiLengthEventTimeWindows.of("10 seconds", "1 minute"))
    made = (
        windows.options(engine=engine, device="cpu")
        .changed_keys()
        .with_outputs()
        .aggregate(n=gw.count())
        .plan
    )
    operator = build_operator(plan(made.query, bounded=False), device="cpu")
    (first, *others), found = [*batches_for(made, rows)], []
    assert not others
    emissions = [*operator.process(first.slice(0, 1)), *operator.advance_watermark(25_000_000)]
    emissions += [*operator.process(first.slice(1)), *operator.advance_watermark(LONG_MAX)]
    for each in emissions:
        found += [(row["k"], row["n_10s"], row["n_1m"]) for row in each.results.to_pylist()]
    late = [row["k"] for each in emissions if len(each.late) for row in each.late.to_pylist()]
    assert (sorted(found), late) == ([("a", 1, 1), ("b", 1, 1)], ["b"])


def test_a_length_may_be_that_of_one_aggregate() -> None:
    hour = windowed(gw.SlidingEventTimeWindows.of("1 hour", "10 seconds"))
    found = hour.aggregate(n=gw.count(), recent=gw.count().within("20 seconds").filter("is_new"))
    by_end = {(row["k"], row[WINDOW_END].timestamp()): row for row in found.to_pylist()}
    assert [by_end["a", at]["recent"] for at in (10, 20, 30, 40)] == [1, 2, 1, 0]
    assert (
        "count(*) FILTER (WHERE is_new) within 20 s"
        in hour.with_outputs()
        .aggregate(recent=gw.count().within("20 seconds").filter("is_new"))
        .explain()
    )


def test_users_aggregates_may_stand_beside() -> None:
    class Longest(gw.functions.AggregateFunction):
        accumulator = result = pa.int64()

        def create_accumulator(self) -> int:
            return 0

        def add(self, row: Any, accumulator: int) -> int:
            return max(int(row["v"]), accumulator)

        def get_result(self, accumulator: int) -> int:
            return accumulator

    made = windowed(gw.SlidingEventTimeWindows.of("20 seconds", "10 seconds"))
    with pytest.raises(QueryError, match="a sequence of names"):
        made.aggregate(most=gw.user_aggregate(Longest(), ["v"]))  # type: ignore[arg-type]
    found = made.aggregate(
        most=gw.user_aggregate(Longest(), "v"), recent=gw.sum("v").within("10 seconds")
    )
    rows = [(row["k"], row["most"], row["recent"]) for row in found.to_pylist()]
    assert sorted(rows, key=repr) == [
        ("a", 1, 1), ("a", 2, 2), ("a", 2, None), ("b", 4, 4), ("b", 4, None),
    ]  # fmt: skip


def test_lengths_are_told() -> None:
    assert (
        "sliding 10 s, 30 s, 2 min every 10 s"
        in windowed().with_outputs().aggregate(n=gw.count()).explain()
    )
    several = MultiLengthEventTimeWindows.of("90 minutes", "1 day", slide="30 minutes")
    assert windowed(several).aggregate(n=gw.count()).column_names[-2:] == ["n_90m", "n_1d"]


SLIDING = gw.SlidingEventTimeWindows.of("1 minute", "10 seconds")
TUMBLING = gw.TumblingEventTimeWindows.of("1 minute")


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        (lambda: gw.MultiLengthEventTimeWindows.of(), InvalidWindowError, "one at least"),
        (lambda: gw.MultiLengthEventTimeWindows.of("0 s"), InvalidWindowError, "positive"),
        (lambda: gw.MultiLengthEventTimeWindows.of("4 s", "6 s"), InvalidWindowError, "multiple"),
        (lambda: gw.MultiLengthEventTimeWindows.of("4 s", "4 s"), InvalidWindowError, "differ"),
        (lambda: gw.count().within("-1 s"), InvalidWindowError, "positive"),
        (lambda: gw.count().within("1 s").within("1 s"), QueryError, "already"),
        (lambda: gw.count().within("1 s").over(gw.Rows(1)), InvalidFrameError, "gw.Range"),
        (lambda: windowed().collect_lists("v"), QueryError, "are for aggregates"),
        (
            lambda: windowed(TUMBLING).process(
                Seen(), output=pa.schema([("n", pa.int64())]),
                aggregates={"n": gw.count().within("1 minute")},
            ),
            QueryError,
            "are for aggregates",
        ),
        (lambda: windowed().top(1, "v"), QueryError, "are for aggregates"),
        (lambda: windowed().aggregate(n=gw.count().within("10 s")), QueryError, "leave out"),
        (lambda: windowed().aggregate(n=gw.collect_list("v")), UnsupportedAggregateError, "need r"),
        (lambda: windowed().allowed_lateness("1 s").aggregate(n=gw.count()), QueryError, "latenes"),
        (
            lambda: windowed().evictor(gw.CountEvictor.of(1)).aggregate(n=gw.count()),
            QueryError,
            "evictor",
        ),
        (
            lambda: windowed().trigger(gw.CountTrigger.of(1)).aggregate(n=gw.count()),
            QueryError,
            "fire once",
        ),
        (
            lambda: windowed(SLIDING).aggregate(n=gw.count().within("15 seconds")),
            InvalidWindowError,
            "multiple of the slide",
        ),
        (
            lambda: windowed(SLIDING).aggregate(n=gw.count().within("2 minutes")),
            InvalidWindowError,
            "at most the size",
        ),
        (
            lambda: windowed(TUMBLING).aggregate(n=gw.count().within("10 seconds")),
            InvalidWindowError,
            "tumble have no shorter parts",
        ),
        (
            lambda: windowed(gw.SlidingEventTimeWindows.of("15 s", "10 s"))
            .changed_keys()
            .aggregate(n=gw.count()),
            InvalidWindowError,
            "multiple of the slide",
        ),
        (
            lambda: windowed(gw.EventTimeSessionWindows.with_gap("1 s"))
            .changed_keys()
            .aggregate(n=gw.count()),
            QueryError,
            "sliding windows",
        ),
        (
            lambda: windowed(gw.CumulativeEventTimeWindows.of("20 s", "10 s"))
            .aggregate(n=gw.count().within("10 s")),
            QueryError,
            "sliding windows",
        ),
    ],
)  # fmt: skip
def test_what_has_no_meaning_is_refused(
    ask: Callable[[], object], error: type[GpuWindowsError], words: str
) -> None:
    with pytest.raises(error, match=words):
        ask()
