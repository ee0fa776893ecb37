"""Results of windows as changes of a table: with which functions, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows import errors

SECOND = 1_000_000
TIMES = [0, 5, 5, 30]
ROWS = pa.table(
    {
        "k": ["a", "a", "a", None],
        "part": [1, 1, 1, None],
        "ts": pa.array([at * SECOND for at in TIMES], pa.timestamp("us", "UTC")),
        "v": [1, 2, 3, 4],
    }
)
GAP = gw.EventTimeSessionWindows.with_gap("10 seconds")
OUTPUT = pa.schema([("n", pa.int64())])


def windowed(
    assigner: gw.functions.WindowAssigner = GAP, *, key: Any = "k"
) -> gw.typing.WindowedStream:
    """Windows that fire at each row."""
    strategy = gw.WatermarkStrategy.for_bounded_out_of_orderness("1 hour")
    keyed = gw.stream(ROWS).event_time("ts", strategy).key_by(*key)
    return keyed.window(assigner).trigger(gw.CountTrigger.of(1))


def told(table: pa.Table, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in table.to_pylist()]


class UpTo(gw.functions.ProcessWindowFunction):
    """Gives the number of rows up to some, then none, or two rows."""

    def __init__(self, most: int, otherwise: int = 0) -> None:
        self.most, self.otherwise = most, otherwise

    def process(
        self, key: Mapping[str, Any], context: gw.typing.ProcessContext, rows: pa.Table
    ) -> Iterator[dict[str, Any]]:
        yield from [{"n": len(rows)}] * (1 if len(rows) <= self.most else self.otherwise)


class Count(gw.functions.VectorWindowFunction):
    def process(self, batch: gw.typing.WindowBatch) -> pa.Table:
        return pa.table({"n": np.diff(batch.offsets)})


def test_a_window_that_gives_nothing_takes_its_row_back() -> None:
    made = windowed().with_firing_columns(changes=True).process(UpTo(2), ["v"], output=OUTPUT)
    assert told(made, "k", "n", "change") == [
        ("a", 1, "insert"),
        ("a", None, "delete"),
        ("a", 2, "insert"),
        ("a", None, "delete"),
        (None, 1, "insert"),
    ]


def test_several_results_of_a_window_are_refused() -> None:
    with pytest.raises(errors.InvalidFunctionError, match="windows with one row or none"):
        windowed().with_firing_columns(changes=True).process(UpTo(1, 2), ["v"], output=OUTPUT)


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_windows_that_keep_their_bounds(engine: Any) -> None:
    tumbling = gw.TumblingEventTimeWindows.of("10 seconds")
    made = (
        windowed(tumbling, key=["k", "part"])
        .options(engine=engine)
        .with_firing_columns(changes=True)
    )
    assert told(made.aggregate(n=gw.count()), "k", "n", "firing", "change") == [
        ("a", 1, 0, "insert"),
        ("a", 2, 1, "update_after"),
        ("a", 3, 2, "update_after"),
        (None, 1, 0, "insert"),
    ]


@pytest.mark.parametrize(
    "assigner",
    [
        GAP,
        gw.TumblingEventTimeWindows.of("10 seconds"),
        gw.SlidingEventTimeWindows.of("9 s", "9 s"),
    ],
)
def test_windows_that_fire_once_are_inserted(assigner: gw.functions.WindowAssigner) -> None:
    """On each strategy, with kernels and without."""
    once = windowed(assigner).trigger(gw.EventTimeTrigger()).with_firing_columns(changes=True)
    for made in (once, once.options(engine="reference")):
        aggregated = made.aggregate(n=gw.count(), first=gw.first("v"))
        assert told(aggregated, "n", "firing", "timing", "change") == [
            (3, 0, "on_time", "insert"),
            (1, 0, "on_time", "insert"),
        ]
        assert made.collect_lists("v")["change"].to_pylist() == ["insert"] * 2


def test_reduce_and_functions_of_many_windows() -> None:
    made = windowed().with_firing_columns(changes=True)
    wanted = ["insert", "delete", "insert", "update_after", "insert"]
    assert made.reduce(lambda _, later: later, ["v"])["change"].to_pylist() == wanted
    vectorised = made.process(Count(), ["v"], output=OUTPUT)
    assert told(vectorised, "n", "change") == [*zip([1, None, 2, 3, 1], wanted, strict=True)]


def test_windows_of_all_rows_and_of_counts() -> None:
    strategy = gw.WatermarkStrategy.for_bounded_out_of_orderness("1 hour")
    timed = gw.stream(ROWS).event_time("ts", strategy)
    made = timed.window_all(GAP).trigger(gw.CountTrigger.of(2)).with_firing_columns(changes=True)
    assert told(made.aggregate(n=gw.count()), "n", "change") == [(2, "insert")]
    counted = timed.key_by("k").count_window(1).with_firing_columns(changes=True)
    changes = counted.aggregate(last=gw.max("v"))
    assert told(changes, "last", "change")[:2] == [(1, "insert"), (2, "update_after")]


def test_chosen_columns_of_changes() -> None:
    outputs = windowed().with_firing_columns(changes=True).with_outputs().aggregate(n=gw.count())
    chosen = outputs.select("k", "change", twice="n * 2").result()
    assert told(chosen, "twice", "change")[:3] == [(2, "insert"), (None, "delete"), (4, "insert")]


def test_what_is_refused() -> None:
    made = windowed().with_firing_columns(changes=True)
    with pytest.raises(errors.UnsupportedQueryError, match="windows with one result"):
        made.top(1, "v")
    with pytest.raises(errors.UnsupportedQueryError, match=r"are replaced and deleted"):
        gw.stream_results(made.with_outputs().aggregate(n=gw.count()))
    side = gw.stream(ROWS).event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    joined = side.key_by("k").join(side.key_by("k")).window(GAP)
    with pytest.raises(errors.UnsupportedQueryError, match="those of two streams have several"):
        joined.with_firing_columns(changes=True)
    tumbling = gw.TumblingEventTimeWindows.of("10 seconds")
    once = (
        windowed(tumbling, key=["k", "part"])
        .trigger(gw.EventTimeTrigger())
        .with_firing_columns(changes=True)
    )
    for several in (once.grouping_sets("rollup"), once.top_keys(1, "n")):
        with pytest.raises(errors.QueryError, match=r"leave changes=True out"):
            several.aggregate(n=gw.count())
    with pytest.raises(errors.QueryError, match="different names"):
        made.aggregate(change=gw.count())


def test_what_explain_says() -> None:
    assert (
        "changes   a column; rows of windows that merged"
        in windowed()
        .with_firing_columns(changes=True)
        .with_outputs()
        .aggregate(n=gw.count())
        .explain()
    )
    plain = windowed().with_outputs().aggregate(n=gw.count()).explain()
    assert "changes" not in plain
