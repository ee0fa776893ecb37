"""Side outputs and counters of functions over windows and pairs on Spark: batches and streams."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import uuid4

import pyarrow as pa
import pytest

import gpu_windows as gw
from tests.lanes import quick
from tests.operators.joins.rows import INSTANT, keyed
from tests.planning.queries import counters_of, rows_of
from tests.spark_glue.stream_runs import (
    BEGIN,
    SECOND,
    files,
    run_to_the_end,
    seconds,
    streamed,
    two_streams,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

LONG, TEXT = pa.int64(), pa.string()
VALUES = pa.schema([("v", LONG)])
COUNT = pa.schema([("n", LONG)])
WINDOWS = gw.TumblingEventTimeWindows.of("10 seconds")
LEFT = [[("a", 1, 1), ("a", 2, 2), ("b", 12, 2)], [("a", 31, 3)], [("a", 60, 9)]]
RIGHT = [[("a", 3, 4)], [("a", 32, 5)], [("a", 33, 8), ("a", 60, 9)]]


class Counted(gw.functions.ProcessWindowFunction):
    """Counts rows; those above 2 go aside."""

    side_outputs: ClassVar = {"large": VALUES}

    def open(self, context: gw.typing.RuntimeContext) -> None:
        self.keys = context.keys

    def process(self, key: Any, context: gw.typing.ProcessContext, rows: Any) -> Iterator[Any]:
        assert self.keys == tuple(key) == ("k",)
        for value in rows["v"].to_pylist():
            if value > 2:
                context.output("large", {"v": value})
        context.count("windows")
        yield {"n": len(rows)}


class CountedBoth(gw.functions.CoGroupFunction):
    """Counts the rows of both sides; those of the left one above 2 go aside."""

    side_outputs: ClassVar = {"large": VALUES}

    def co_group(
        self, key: Any, context: gw.typing.WindowContext, left: Any, right: Any
    ) -> Iterator[Any]:
        for value in left["v"].to_pylist():
            if value > 2:
                context.output("large", {"v": value})
        context.count("windows")
        yield {"n": len(left) + len(right)}


class Newest(gw.functions.Evictor):
    """Leaves the newest row; others go aside."""

    side_outputs: ClassVar = {"evicted": VALUES}
    columns = ("v",)

    def evict_before(self, elements: Any, window: Any, context: gw.typing.EvictorContext) -> Any:
        for element in elements[:-1]:
            context.output("evicted", {"v": element.row["v"]})
            context.count("evicted")
        return elements[-1:]


class InTime(gw.functions.ProcessJoinFunction):
    """Gives both rows of a pair, with the pair's time; rows without a partner go aside."""

    side_outputs: ClassVar = {"alone": VALUES}
    output = pa.schema([("side", TEXT), ("v", LONG), ("at", LONG)])

    def process_element(
        self, left: Any, right: Any, context: gw.typing.IntervalPairContext
    ) -> Iterator[Any]:
        context.count("pairs")
        if right is None:
            context.output("alone", {"v": left["v"]})
            return
        at = (context.timestamp - BEGIN) // SECOND
        yield {"side": "left", "v": left["v"], "at": at}
        yield {"side": "right", "v": right["v"], "at": at}


class InWindows(gw.functions.FlatJoinFunction):
    """Gives both rows of a pair; rows without a partner go aside."""

    side_outputs: ClassVar = {"alone": VALUES}
    output = pa.schema([("side", TEXT), ("v", LONG), ("at", LONG)])

    def join(self, left: Any, right: Any, context: Any) -> Iterator[Any]:
        context.count("pairs")
        if right is None:
            context.output("alone", {"v": left["v"]})
            return
        at = (context.window.end - BEGIN) // SECOND
        yield {"side": "left", "v": left["v"], "at": at}
        yield {"side": "right", "v": right["v"], "at": at}


def windows(left: Any, right: Any) -> gw.typing.Outputs:
    del right
    windowed = keyed(left).window(WINDOWS).arrival_order("ts").evictor(Newest()).options(shards=3)
    return windowed.with_outputs().process(Counted(), ["v"], output=COUNT)


def both_sides(left: Any, right: Any) -> gw.typing.Outputs:
    both = keyed(left).co_group(keyed(right)).window(WINDOWS).options(shards=3)
    return both.with_outputs().process(CountedBoth(), ["v"], ["v"], output=COUNT)


def in_time(left: Any, right: Any) -> gw.typing.Outputs:
    join = keyed(left).interval_join(keyed(right)).between("-5 seconds", "2 seconds")
    return (
        join.options(shards=3)
        .with_outputs()
        .process(InTime(), ["v"], ["v"], output=InTime.output, how="left")
    )


def in_windows(left: Any, right: Any) -> gw.typing.Outputs:
    join = keyed(left).join(keyed(right)).window(WINDOWS).options(shards=3)
    return join.with_outputs().process(
        InWindows(), ["v"], ["v"], output=InWindows.output, how="left"
    )


MADE = (windows, both_sides, in_time, in_windows)


@pytest.mark.parametrize("made", quick(MADE, windows, in_time))
def test_a_batch(spark: SparkSession, made: Any) -> None:
    """As on tables; the hidden columns of pairs are not seen."""
    rows = [[row for part in side for row in part] for side in (LEFT, RIGHT)]
    sides = [*map(seconds, rows)]
    wanted = made(*sides)
    found = made(*(spark.createDataFrame(side) for side in sides))
    assert rows_of(found.result().toArrow()) == rows_of(wanted.result())
    for tag in found.plan.query.side_outputs:
        aside = rows_of(found.side(tag).toArrow())
        assert aside == rows_of(wanted.side(tag))
        assert aside
    assert counters_of(found.metrics()) == counters_of(wanted.metrics())
    assert not any(name.endswith("mark") for name in found.rejected().columns)


@pytest.mark.parametrize("made", quick(MADE, nightly=[windows, both_sides, in_windows]))
def test_a_stream(spark: SparkSession, tmp_path: Path, made: Any) -> None:
    """What comes until 60 s is as on tables, also where the query was started again."""
    rows = [[row for part in side for row in part] for side in (LEFT, RIGHT)]
    wanted = made(*map(seconds, rows))
    for count in (2, 3):
        streams = two_streams(spark, tmp_path, LEFT[:count], RIGHT[:count])
        run_to_the_end(made(*streams), tmp_path)
    outputs = {
        "result": wanted.result(),
        **{f"sides/{t}": wanted.side(t) for t in sides_of(wanted)},
    }
    for name, table in outputs.items():
        written = gw.read_output(spark, tmp_path / "out", name).toArrow()
        columns = [n for n in table.column_names if not n.startswith("window_")]
        found = Counter(rows_of(written.select(columns)))
        late = Counter(rows_of(table.select(columns))) - found
        assert found, name
        assert found <= Counter(rows_of(table.select(columns))), name
        assert sum(late.values()) <= 2, name  # of rows of 60 s, whose window is open


class Bounds(gw.functions.ProcessWindowFunction):
    """Gives the bounds of its windows aside: the start in ticks, the end as a time."""

    bounds = pa.schema([("window_start", LONG), ("window_end", INSTANT)])
    side_outputs: ClassVar = {"bounds": bounds}

    def process(self, key: Any, context: gw.typing.ProcessContext, rows: Any) -> Iterator[Any]:
        window: Any = context.window
        context.output("bounds", {"window_start": window.start, "window_end": window.end})
        yield {"n": len(rows)}


def test_bounds_of_windows_in_a_side_output_are_as_declared(spark: SparkSession) -> None:
    def made(rows: Any) -> gw.typing.Outputs:
        return keyed(rows).window(WINDOWS).with_outputs().process(Bounds(), ["v"], output=COUNT)

    rows = seconds([row for part in LEFT for row in part])
    found, wanted = made(spark.createDataFrame(rows)).side("bounds"), made(rows).side("bounds")
    assert [t for _, t in found.dtypes] == ["string", "bigint", "timestamp"]
    assert rows_of(found.toArrow()) == rows_of(wanted)
    assert len(wanted) == 4


class Shown(gw.functions.ProcessWindowFunction):
    """Says what it is shown."""

    output = pa.schema([("seen", TEXT)])

    def open(self, context: gw.typing.RuntimeContext) -> None:
        self.keys = context.keys

    def process(self, key: Any, context: gw.typing.ProcessContext, rows: Any) -> Iterator[Any]:
        yield {"seen": f"{self.keys} {dict(key)} {rows.column_names}"}


class ShownRows(gw.functions.KeyedProcessFunction):
    """Says what it is shown."""

    side_outputs: ClassVar = {"rows": pa.schema([("seen", TEXT)])}

    def open(self, context: gw.typing.OpenContext) -> None:
        self.keys = context.keys

    def process_element(self, row: Any, context: gw.typing.KeyedContext) -> Iterator[Any]:
        context.output("rows", {"seen": f"{self.keys} {dict(context.key)} {[*row]}"})
        yield from ()


def test_expressions_are_seen_by_the_names_that_users_gave_them(spark: SparkSession) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    by_upper = keyed(spark.createDataFrame(seconds([("a", 1, 1)])), key=F.upper("k").alias("k"))
    twice, wanted = (F.col("v") * 2).alias("twice"), "('k',) {'k': 'A'} ['twice', 'v']"
    found = by_upper.window(WINDOWS).process(Shown(), [twice, "v"], output=Shown.output)
    assert [(row["k"], row["seen"]) for row in found.collect()] == [("A", wanted)]
    rows = (
        by_upper.with_outputs().process(ShownRows(), [twice, "v"], output=Shown.output).side("rows")
    )
    assert [(row["k"], row["seen"]) for row in rows.collect()] == [("A", wanted)]
    with pytest.raises(gw.errors.NameClashError, match=r"results must have .* got 'K', 'k'"):
        by_upper.window(WINDOWS).with_outputs().aggregate(K=gw.count())
    with pytest.raises(gw.errors.NameClashError, match=r"a function sees .* got 'v'"):
        by_upper.process(ShownRows(), ["v", twice.alias("v")], output=Shown.output)
    with pytest.raises(gw.errors.NameClashError, match=r"a function sees .* got 'v'"):
        by_upper.window(WINDOWS).process(Shown(), ["v", twice.alias("v")], output=Shown.output)


class Names(gw.functions.AggregateFunction):
    """Gives the names that it sees, and the sum of the values."""

    accumulator = result = TEXT

    def create_accumulator(self) -> str:
        return ""

    def add(self, row: Any, accumulator: str) -> str:
        return f"{accumulator}{dict(row)}"

    def merge(self, one: str, other: str) -> str:
        return one + other

    def get_result(self, accumulator: str) -> str:
        return accumulator


def added(earlier: Any, later: Any) -> Any:
    return {"twice": earlier["twice"] + later["twice"], "v": later["v"]}


def test_so_see_them_aggregates_and_reduce_functions(spark: SparkSession) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    twice = (F.col("v") * 2).alias("twice")
    rows = spark.createDataFrame(seconds([("a", 1, 1), ("a", 2, 3)]))
    windowed = keyed(rows).window(WINDOWS).arrival_order("v")
    (reduced,) = windowed.reduce(added, [twice, "v"]).collect()
    assert (reduced["twice"], reduced["v"]) == (8, 3)
    (aggregated,) = windowed.aggregate(n=gw.user_aggregate(Names(), twice, "v")).collect()
    assert aggregated["n"] == "{'twice': 2, 'v': 1}{'twice': 6, 'v': 3}"
    with pytest.raises(Exception, match="a reduce function must return exactly twice, v"):
        windowed.reduce(lambda earlier, later: {"v": 1}, [twice, "v"]).collect()


def sides_of(outputs: gw.typing.Outputs) -> tuple[str, ...]:
    return tuple(outputs.plan.query.side_outputs)


class Worker(gw.functions.ProcessWindowFunction):
    """Tells which process it runs in, and notes when it is opened."""

    output = pa.schema([("worker", LONG), ("opened", TEXT)])

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._opened = ""

    def open(self, context: gw.typing.RuntimeContext) -> None:
        self._opened = uuid4().hex
        (Path(self._folder) / self._opened).write_text(str(os.getpid()))

    def process(self, key: Any, context: gw.typing.ProcessContext, rows: Any) -> Iterator[Any]:
        yield {"worker": os.getpid(), "opened": self._opened}


@pytest.mark.thorough
def test_a_function_is_opened_once_in_a_worker(spark: SparkSession, tmp_path: Path) -> None:
    """Plans are pickled to every task anew."""
    tables = [seconds([(key, 20 * number, 1) for key in "abcdef"]) for number in range(6)]
    files(tmp_path / "in", tables)
    (tmp_path / "opened").mkdir()
    windowed = keyed(streamed(spark, tmp_path / "in", tables[0])).window(WINDOWS)
    function = Worker(str(tmp_path / "opened"))
    run_to_the_end(windowed.with_outputs().process(function, output=Worker.output), tmp_path)
    frame = gw.read_output(spark, tmp_path / "out", micro_batch="number")
    found = {(row["worker"], row["number"]): row["opened"] for row in frame.collect()}
    openings = {(worker, opened) for (worker, _), opened in found.items()}
    workers = {worker for worker, _ in openings}
    assert len(openings) == len(workers) < len(found)
    noted = [file.read_text() for file in (tmp_path / "opened").iterdir()]
    assert len(noted) == len({*noted}) >= len(workers)
