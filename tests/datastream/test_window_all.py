"""Windows of all rows, whatever their keys (Flink: windowAll), of tables and in batch.

The first two as PyFlink's tests of windows have them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows import errors
from tests.lanes import quick
from tests.planning.queries import counters_of, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECOND = 1_000_000
WATERMARKS = gw.WatermarkStrategy.for_monotonous_timestamps()


def at(seconds: list[int | None], **columns: Any) -> pa.Table:
    ticks = pa.array([None if s is None else s * SECOND for s in seconds], pa.int64())
    return pa.table({"ts": ticks.cast(pa.timestamp("us", "UTC")), **columns})


COUNTED = at([1, 2, 3, 4, 5, 8, 9, 15, None])
LETTERS = at([1, 2, 3, 6, 8, 9, 15], letter=[*"aababba"], v=[1, 2, 3, 6, 8, 9, 15])
FIVE = gw.TumblingEventTimeWindows.of("5 s")
SESSIONS = gw.EventTimeSessionWindows.with_gap("2 s")


def add(left: Mapping[str, Any], right: Mapping[str, Any]) -> dict[str, Any]:
    return {"letter": left["letter"], "v": left["v"] + right["v"]}


class Summary(gw.functions.ProcessWindowFunction):
    """What it is given of a window."""

    def process(self, key: Any, context: Any, rows: pa.Table) -> list[dict[str, object]]:
        begin = context.window.start // SECOND
        return [{"text": f"{dict(key)} {begin}: {rows['letter'].to_pylist()}"}]


class Sizes(gw.functions.VectorWindowFunction):
    """How many rows windows have, and what it is told of them."""

    def process(self, batch: gw.typing.WindowBatch) -> pa.Table:
        names = ", ".join(batch.windows.column_names)
        sizes = [int(b - a) for a, b in zip(batch.offsets[:-1], batch.offsets[1:], strict=True)]
        return pa.table({"names": [names] * len(batch), "size": sizes})


TEXT = pa.schema([("text", pa.string())])
NAMES = pa.schema([("names", pa.string()), ("size", pa.int64())])

#: Rows, how windows of them are made, their start and end in seconds and what else they give.
QUERIES: dict[str, tuple[pa.Table, Callable[[Any], gw.typing.Outputs], list[tuple[Any, ...]]]] = {
    "count": (
        COUNTED,
        lambda s: s.window_all(FIVE).with_outputs().aggregate(n=gw.count()),
        [(0, 5, 4), (5, 10, 3), (15, 20, 1)],
    ),
    "reduce": (
        LETTERS,
        lambda s: (
            s.window_all(SESSIONS).arrival_order("ts").with_outputs().reduce(add, ("letter", "v"))
        ),
        [(1, 5, "a", 6), (6, 11, "a", 23), (15, 17, "a", 15)],
    ),
    "aggregate": (
        LETTERS,
        lambda s: (
            s.window_all(SESSIONS)
            .arrival_order("ts")
            .with_outputs()
            .aggregate(top=gw.max("v"), last=gw.last("letter"))
        ),
        [(1, 5, 3, "b"), (6, 11, 9, "b"), (15, 17, 15, "a")],
    ),
    "sliding": (
        LETTERS,
        lambda s: (
            s.window_all(gw.SlidingEventTimeWindows.of("10 s", "5 s"))
            .with_outputs()
            .aggregate(total=gw.sum("v"), middle=gw.median("v"))
        ),
        [(-5, 5, 6, 2.0), (0, 10, 29, 4.5), (5, 15, 23, 8.0), (10, 20, 15, 15.0), (15, 25, 15, 15)],
    ),
    "process": (
        LETTERS,
        lambda s: (
            s.window_all(SESSIONS)
            .arrival_order("ts")
            .with_outputs()
            .process(Summary(), ("letter",), output=TEXT)
        ),
        [
            (1, 5, "{} 1: ['a', 'a', 'b']"),
            (6, 11, "{} 6: ['a', 'b', 'b']"),
            (15, 17, "{} 15: ['a']"),
        ],
    ),
    "vectorised": (
        LETTERS,
        lambda s: s.window_all(FIVE).with_outputs().process(Sizes(), ("v",), output=NAMES),
        [
            (0, 5, "window_start, window_end", 3),
            (5, 10, "window_start, window_end", 3),
            (15, 20, "window_start, window_end", 1),
        ],
    ),
    "firings": (
        LETTERS,
        lambda s: (
            s.window_all(FIVE)
            .trigger(gw.EarlyAndLateTrigger.of(early=gw.CountTrigger.of(2)))
            .arrival_order("ts")
            .with_firing_columns()
            .with_outputs()
            .aggregate(n=gw.count())
        ),
        [
            (0, 5, 2, 0, "early"),
            (0, 5, 3, 1, "on_time"),
            (5, 10, 2, 0, "early"),
            (5, 10, 3, 1, "on_time"),
            (15, 20, 1, 0, "on_time"),
        ],
    ),
}


def found(table: pa.Table) -> list[tuple[Any, ...]]:
    """The results, bounds in seconds."""
    bounds = [table[name].cast(pa.int64()).to_pylist() for name in table.column_names[:2]]
    assert table.column_names[:2] == ["window_start", "window_end"]
    rest = [column.to_pylist() for column in table.columns[2:]]
    seconds = [[value // SECOND for value in values] for values in bounds]
    return [*zip(*seconds, *rest, strict=True)]


def timed(source: Any) -> gw.typing.TimedStream:
    return gw.stream(source).event_time("ts", WATERMARKS)


@pytest.mark.parametrize("name", QUERIES)
def test_tables(name: str) -> None:
    table, build, wanted = QUERIES[name]
    assert sorted(found(build(timed(table)).result())) == wanted
    assert sorted(found(build(timed(table.to_reader(3))).result())) == wanted


@pytest.mark.spark
@pytest.mark.parametrize("partials", quick(["auto", "spark"], "auto"))
@pytest.mark.parametrize("name", quick(QUERIES, "sliding", "process"))
def test_batches(spark: SparkSession, name: str, partials: str) -> None:
    table, build, wanted = QUERIES[name]
    if partials == "spark" and name != "count":
        pytest.skip("only slices have partials in Spark")

    class Said:
        def window_all(self, assigner: gw.functions.WindowAssigner) -> gw.typing.WindowedStream:
            frame = spark.createDataFrame(table).repartition(3)
            return timed(frame).window_all(assigner).options(partials=partials, device="cpu")

    made = build(Said())
    assert sorted(found(made.result().toArrow())) == sorted(wanted)
    local = build(timed(table))
    theirs, ours = counters_of(made.metrics()), counters_of(local.metrics())
    assert (theirs.rows, theirs.null_timestamp) == (ours.rows, ours.null_timestamp)
    assert made.rejected().toArrow().num_rows == local.rejected().num_rows
    assert made.rejected().columns == [*table.column_names, "rejection_reason"]


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_rows_are_counted_whatever_their_keys(engine: str) -> None:
    for stream in (timed(COUNTED), gw.stream(COUNTED)):
        windowed = stream.count_window_all(3, 2).options(engine=engine)
        counted = windowed.aggregate(n=gw.count(), last=gw.max("ts"))
        last = counted["last"].cast(pa.int64()).to_pylist()
        assert counted["n"].to_pylist() == [2, 3, 3, 3]
        assert [time // SECOND for time in last] == [2, 4, 8, 15]


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_it_is_what_one_key_for_all_gives(engine: str) -> None:
    keyed = timed(LETTERS.append_column("one", pa.array([1] * len(LETTERS)))).key_by("one")
    wanted = keyed.window(SESSIONS).options(engine=engine).aggregate(s=gw.stddev("v"))
    ours = timed(LETTERS).window_all(SESSIONS).options(engine=engine).aggregate(s=gw.stddev("v"))
    assert rows_of(ours) == rows_of(wanted.drop_columns(["one"]))


def test_what_it_says_of_itself() -> None:
    made = timed(LETTERS).window_all(FIVE).with_outputs().aggregate(n=gw.count())
    assert "key       none: all rows together" in made.explain()
    with pytest.raises(errors.QueryError, match="windows of all rows: window_all"):
        timed(LETTERS).key_by().window(FIVE).aggregate(n=gw.count())
    with pytest.raises(errors.QueryError, match="window takes a window assigner"):
        timed(LETTERS).window_all("5 s")  # type: ignore[arg-type]
    with pytest.raises(errors.UnsupportedQueryError, match="a time and a key"):
        gw.trace_firings(made, LETTERS)
