"""Process functions on Spark: batches, streams that are started again, side outputs, times."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows import errors
from gpu_windows.monitoring.queries import read_metrics
from gpu_windows.operators.process.broadcast_state import BROADCAST
from tests.operators.joins.rows import STRICT, keyed
from tests.operators.process.functions import LONG, TEXT, Everything, Row
from tests.planning.queries import counters_of, rows_of
from tests.spark_glue.stream_runs import (
    BEGIN,
    SECOND,
    WATERMARKS,
    emissions,
    files,
    run_to_the_end,
    seconds,
    streamed,
    two_streams,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

SIDES = ("odd", "timers")


def tables(count: int = 3, rows: int = 60) -> list[pa.Table]:
    """Rows of a minute each, some out of order, some without a time or a value."""
    rng, found = np.random.default_rng(5), []
    for number in range(count):
        at = BEGIN + number * 60 * SECOND + rng.integers(-20 * SECOND, 60 * SECOND, rows)
        ticks = pa.array(at, mask=rng.random(rows) < 0.05)
        columns = {
            "k": rng.choice(["a", "b", "c", "d", "e"], rows),
            "ts": ticks.cast(pa.timestamp("us", "UTC")),
            "v": pa.array(rng.integers(0, 30, rows), mask=rng.random(rows) < 0.1),
            "seq": np.arange(number * rows, (number + 1) * rows),
        }
        found.append(pa.table(columns))
    return found


def processed(source: Any, function: Any, **options: Any) -> gw.typing.Outputs:
    timed = gw.stream(source).event_time("ts", WATERMARKS)
    return (
        timed.key_by("k")
        .with_outputs()
        .process(function, ["v"], output=function.output, arrival_order=["seq"], **options)
    )


def everything() -> Everything:
    return Everything(uses_processing_time=False)


def source_of(spark: SparkSession, folder: Path) -> DataFrame:
    return streamed(spark, folder, tables(1, 1)[0])


def test_a_batch(spark: SparkSession) -> None:
    table = pa.concat_tables(tables())
    frame = spark.createDataFrame(table)
    found, wanted = (processed(source, everything(), shards=5) for source in (frame, table))
    assert rows_of(found.result().toArrow()) == rows_of(wanted.result())
    for tag in SIDES:
        side = found.side(tag).toArrow()
        assert rows_of(side) == rows_of(wanted.side(tag))
        assert len(side) > 20
    assert counters_of(found.metrics()) == counters_of(wanted.metrics())
    assert rows_of(found.rejected().toArrow()) == rows_of(wanted.rejected())


class Sink:
    """Keeps what a function is given."""

    def __init__(self) -> None:
        self.given: dict[str, list[Any]] = {}

    def __call__(
        self, results: Any, late: Any, number: int, *, sides: Mapping[str, DataFrame]
    ) -> None:
        for name, frame in {"result": results, "late": late, **sides}.items():
            self.given.setdefault(name, []).extend(rows_of(frame.toArrow()))


def test_a_stream_goes_on_where_it_ended(spark: SparkSession, tmp_path: Path) -> None:
    """State, timers and side outputs; at the second start there is another sink."""
    whole = tables()
    files(tmp_path / "in", whole[:2])
    made = processed(source_of(spark, tmp_path / "in"), everything(), shards=3)
    run_to_the_end(made, tmp_path)
    files(tmp_path / "in", whole)
    sink = Sink()
    again = processed(source_of(spark, tmp_path / "in"), everything(), shards=3)
    state = tmp_path / "state"
    query = gw.write_stream(again, sink, state, trigger={"availableNow": True})
    query.awaitTermination()
    latest = (read_metrics(str(query.id)) or [])[-1]
    counted = sum(value for _, value in latest.counters.user)
    assert counted == sum(
        row["v"] for row in whole[2].to_pylist() if row["ts"] and row["v"] and row["v"] % 2
    )

    wanted = emissions(made, whole)
    found = {"result": [e.results for e in wanted], "late": [e.late for e in wanted]}
    found |= {f"sides/{tag}": [e.sides[tag] for e in wanted if e.sides] for tag in SIDES}
    for name, parts in found.items():
        table = pa.concat_tables(part for part in parts if len(part))
        written = gw.read_output(spark, tmp_path / "out", name).toArrow()
        given = sink.given[name.removeprefix("sides/")]
        if name == "late":
            table, written = table.select(["seq"]), written.select(["seq"])
            given = [(seq,) for *_, seq, _ in given]
        assert sorted([*rows_of(written), *given], key=repr) == rows_of(table)
        assert len(written), name
        assert given, name


def test_what_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    source, state = source_of(spark, tmp_path / "in"), str(tmp_path / "state")
    run_to_the_end(processed(source, everything()), tmp_path)
    more = {"more": gw.functions.ValueStateDescriptor(LONG)}
    changed = Everything(uses_processing_time=False, more=more)
    with pytest.raises(errors.StateMismatchError, match=r"state\.more was not there, is Value"):
        gw.write_stream(processed(source, changed), tmp_path / "out", state)
    with pytest.raises(errors.QueryError, match=r"a function of results, late rows, number, sides"):
        gw.write_stream(processed(source, everything()), lambda *_: None, state)
    with pytest.raises(errors.UnsupportedQueryError, match=r"got side\('odd'\) of a stream"):
        processed(source, everything()).side("odd")
    with pytest.raises(errors.OutputError, match="sides/even"):
        gw.read_output(spark, tmp_path / "out", "sides/even")


class Rates(gw.functions.KeyedCoProcessFunction):
    """Left rows meet the last right row, which is over after 20 seconds."""

    output = pa.schema([("v", LONG), ("rate", LONG)])
    state: ClassVar = {"rate": gw.functions.ValueStateDescriptor(LONG)}
    side_outputs: ClassVar = {"rates": pa.schema([("rate", LONG)])}

    def process_element1(self, row: Row, context: Any) -> Iterator[Row]:
        yield {"v": row["v"], "rate": context.state("rate").value()}

    def process_element2(self, row: Row, context: Any) -> None:
        context.state("rate").update(row["v"])
        context.register_event_time_timer(context.timestamp + 20 * SECOND)
        context.output("rates", {"rate": row["v"]})

    def on_timer(self, time: int, context: Any) -> Iterator[Row]:
        yield {"v": None, "rate": context.state("rate").value()}
        context.state("rate").clear()


LEFT = [[("a", 1, 1), ("b", 12, 2)], [("a", 31, 3)], [("a", 40, 6)]]
RIGHT = [[("a", 3, 4)], [("a", 32, 5)], [("a", 2, 6), ("a", 39, 8)]]


@pytest.mark.thorough
def test_connected_streams(spark: SparkSession, tmp_path: Path) -> None:
    """In the second micro-batch the watermark comes to 31 s: the timer of 23 s is after its rows.

    That of 22 s, which the third one sets, is due at once: at 39 s. That of 52 s waits.
    """
    left, right = map(keyed, two_streams(spark, tmp_path, LEFT, RIGHT))
    made = (
        left.connect(right)
        .with_outputs()
        .process(Rates(), ["v"], ["v"], output=Rates.output, shards=2)
    )
    run_to_the_end(made, tmp_path)
    found = gw.read_output(spark, tmp_path / "out").collect()
    rows = [("a", 1, None), ("b", 2, None), ("a", 3, 4), ("a", None, 5), ("a", None, 8)]
    assert Counter(map(tuple, found)) == Counter([*rows, ("a", 6, 8)])
    rates = gw.read_output(spark, tmp_path / "out", "sides/rates").collect()
    assert sorted(row["rate"] for row in rates) == [4, 5, 6, 8]


class Rated(gw.functions.KeyedBroadcastProcessFunction):
    """Keyed rows tell the rates that are known."""

    output = pa.schema([("v", LONG), ("rates", TEXT)])
    side_outputs: ClassVar = {"told": pa.schema([("rate", LONG)])}
    broadcast_state: ClassVar = {"rates": gw.functions.MapStateDescriptor(LONG, LONG)}

    def process_element(self, row: Row, context: Any) -> Iterator[Row]:
        rates = context.broadcast_state("rates")
        yield {"v": row["v"], "rates": " ".join(map(str, rates.values()))}

    def process_broadcast_element(self, row: Row, context: Any) -> Iterator[Row]:
        rates = context.broadcast_state("rates")
        rates.put(row["v"] % 10, row["v"])
        context.output("told", {"rate": row["v"]})
        yield {"v": row["v"], "rates": str(len([*rates.keys()]))}


@pytest.mark.thorough
def test_a_broadcast_stream(spark: SparkSession, tmp_path: Path) -> None:
    """Shards that had no row yet know all rates, also after the query was started again."""
    rows = [[("a", 1, 1), ("b", 2, 2)], [("c", 31, 3)], [("a", 61, 4), ("d", 5, 5)]]
    rates = [[("x", 5, 10), ("y", 3, 31)], [], [("z", 99, 20), ("z", 98, 42)]]
    for count in (2, 3):
        keyed_side, small = two_streams(spark, tmp_path, rows[:count], rates[:count])
        both = keyed(keyed_side).connect(gw.stream(small).event_time("ts", STRICT).broadcast())
        made = both.with_outputs().process(Rated(), ["v"], ["v"], output=Rated.output, shards=3)
        run_to_the_end(made, tmp_path)
    found = Counter(map(tuple, gw.read_output(spark, tmp_path / "out").collect()))
    told = [(None, 31, "1"), (None, 10, "2"), (None, 42, "3"), (None, 20, "3")]
    known = [("a", 1, "31 10"), ("b", 2, "31 10"), ("c", 3, "31 10")]
    assert found == Counter([*told, *known, ("a", 4, "31 20 42"), ("d", 5, "31 20 42")])
    aside = gw.read_output(spark, tmp_path / "out", "sides/told").collect()
    assert sorted(map(tuple, aside)) == [(None, rate) for rate in (10, 20, 31, 42)]
    held = gw.read_state(tmp_path / "state")
    (kind,) = (each for each in held.tables if each.table == BROADCAST)
    assert kind.counts["rows"] == 3 * 3


@pytest.mark.thorough
def test_a_broadcast_batch(spark: SparkSession) -> None:
    """As on tables, where each row is there once, in any number of shards."""
    table, rates = pa.concat_tables(tables()), seconds([("x", 5, 10), ("y", 3, 31), ("z", 9, 20)])

    def outputs(source: Any, small: Any) -> gw.typing.Outputs:
        keys = gw.stream(source).event_time("ts", WATERMARKS).key_by("k")
        both = keys.connect(gw.stream(small).event_time("ts", STRICT).broadcast())
        return both.with_outputs().process(Rated(), ["v"], ["v"], output=Rated.output, shards=5)

    frames = (spark.createDataFrame(each) for each in (table, rates.take(pa.array([1, 0, 2]))))
    found, wanted = outputs(*frames), outputs(table, rates.take(pa.array([1, 0, 2])))
    assert rows_of(found.result().toArrow()) == rows_of(wanted.result())
    assert rows_of(found.side("told").toArrow()) == rows_of(wanted.side("told"))
    assert counters_of(found.metrics()) == counters_of(wanted.metrics())
    assert found.rejected().count() == len(wanted.rejected())


class Clock(gw.functions.KeyedProcessFunction):
    """Tells the time, and that at which it was asked before, for three seconds."""

    output = pa.schema([("now", LONG), ("before", LONG)])
    state: ClassVar = {
        "before": gw.functions.ValueStateDescriptor(
            LONG, ttl=gw.functions.StateTtlConfig.of("3 seconds")
        )
    }

    def process_element(self, row: Row, context: Any) -> Iterator[Row]:
        now, before = context.current_processing_time, context.state("before")
        yield {"now": now, "before": before.value()}
        before.update(now)


@pytest.mark.thorough
def test_the_time_that_a_function_sees(spark: SparkSession, tmp_path: Path) -> None:
    """Processing time passes for it, though only event time moves the query."""
    rows, runs = seconds([("a", 1, 1), ("a", 2, 2)]), []
    for number in range(2):
        files(tmp_path / "in", [rows] * (number + 1))
        keys = keyed(streamed(spark, tmp_path / "in", rows))
        began = time.time_ns() // 1_000_000 * 1_000
        run_to_the_end(keys.with_outputs().process(Clock(), ["v"], output=Clock.output), tmp_path)
        runs.append((began, time.time_ns() // 1_000))
        time.sleep(3.1)
    found = [tuple(row)[1:] for row in gw.read_output(spark, tmp_path / "out").collect()]
    times = sorted({now for now, _ in found})
    assert Counter(found) == Counter((now, before) for now in times for before in (None, now))
    for now, (began, ended) in zip(times, runs, strict=True):
        assert began <= now <= ended


class Alarm(gw.functions.KeyedProcessFunction):
    """A timer a second after each row."""

    output = pa.schema([("set", LONG), ("at", LONG)])
    state: ClassVar = {"set": gw.functions.ValueStateDescriptor(LONG)}
    uses_processing_time = True

    def process_element(self, row: Row, context: Any) -> None:
        context.state("set").update(context.current_processing_time)
        context.register_processing_time_timer(context.current_processing_time + SECOND)

    def on_timer(self, time: int, context: Any) -> Iterator[Row]:
        assert context.time_domain == "processing_time"
        assert time <= context.current_processing_time
        yield {"set": context.state("set").value(), "at": time}


@pytest.mark.thorough
def test_timers_of_processing_time(spark: SparkSession, tmp_path: Path) -> None:
    """They fire without another row."""
    rows = seconds([("a", 1, 1), ("b", 2, 2)])
    files(tmp_path / "in", [rows])
    keys = gw.stream(streamed(spark, tmp_path / "in", rows)).key_by("k")
    made = keys.with_outputs().process(Alarm(), output=Alarm.output)
    query = gw.write_stream(made, tmp_path / "out", tmp_path / "state")
    try:
        deadline = time.monotonic() + 240
        found: list[Any] = []
        while len(found) < 2:
            assert time.monotonic() < deadline, query.exception()
            time.sleep(0.5)
            found = gw.read_output(spark, tmp_path / "out").collect()
    finally:
        query.stop()
    assert sorted(row["k"] for row in found) == ["a", "b"]
    assert all(row["at"] == row["set"] + SECOND for row in found)


class Worker(gw.functions.KeyedProcessFunction):
    """Tells which process it runs in, and notes when it is opened."""

    output = pa.schema([("worker", LONG), ("opened", TEXT)])
    opened: str

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def open(self, context: gw.typing.OpenContext) -> None:
        self.opened = uuid4().hex
        (Path(self._folder) / self.opened).write_text(str(os.getpid()))

    def process_element(self, row: Row, context: Any) -> Iterator[Row]:
        yield {"worker": os.getpid(), "opened": self.opened}


@pytest.mark.thorough
def test_a_function_is_opened_once_in_a_worker(spark: SparkSession, tmp_path: Path) -> None:
    """Plans are pickled to every task anew."""
    files(tmp_path / "in", tables(6))
    (tmp_path / "opened").mkdir()
    made = processed(source_of(spark, tmp_path / "in"), Worker(str(tmp_path / "opened")))
    run_to_the_end(made, tmp_path)
    frame = gw.read_output(spark, tmp_path / "out", micro_batch="number")
    found = {(row["worker"], row["number"]): row["opened"] for row in frame.collect()}
    openings = {(worker, opened) for (worker, _), opened in found.items()}
    workers = {worker for worker, _ in openings}
    assert len(openings) == len(workers) < len(found)
    noted = [file.read_text() for file in (tmp_path / "opened").iterdir()]
    assert len(noted) == len({*noted}) >= len(workers)
