"""Sinks: a table that keeps the latest firing of every window; one's own; what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows import errors
from gpu_windows.planning.own_columns import REASON
from gpu_windows.runners.sink import SinkBatch
from gpu_windows.sinks.function import FunctionSink
from gpu_windows.sinks.modes import Replacement
from gpu_windows.sinks.upsert import UpsertWriter
from gpu_windows.spark_glue.session.settings import SETTINGS
from tests.spark_glue.stream_runs import ASSIGNERS, batches, expected, files, streamed, windowed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def continuous(source: Any) -> gw.typing.WindowedStream:
    """Windows that fire every 15 s of event time and at their end."""
    trigger = gw.ContinuousEventTimeTrigger.of("15 seconds")
    return windowed(source, ASSIGNERS["continuous"]).trigger(trigger)


def test_upsert(spark: SparkSession, tmp_path: Path) -> None:
    """The last firing of every window is left, whatever came before it in its micro-batch."""
    tables = batches(3, 200)
    files(tmp_path / "in", tables)
    made = continuous(streamed(spark, tmp_path / "in")).with_firing_columns()
    outputs = made.with_outputs().aggregate(n=gw.count(), total=gw.sum("v"))
    table: dict[Any, Any] = {}
    merged: list[int] = []
    late: list[int] = []

    def merge(rows: DataFrame, on: tuple[str, ...], number: int) -> None:
        assert on == ("k", "window_start", "window_end")
        found = {tuple(row[name] for name in on): row for row in rows.collect()}
        assert len(found) == rows.count()
        table.update(found)
        merged.append(number)

    gw.write_stream(
        outputs,
        gw.upsert(merge, late=lambda rows, _: late.append(rows.count())),
        tmp_path / "state",
        trigger={"availableNow": True},
    ).awaitTermination()
    results, given_back = expected(outputs, tables)
    wanted: dict[Any, tuple[int, int, float]] = {}
    for row in results.to_pylist():
        at = row["k"], row["window_start"]
        wanted[at] = max(wanted.get(at, (-1, 0, 0.0)), (row["firing"], row["n"], row["total"]))
    got = {
        (row.k, int(row.window_start.timestamp() * 1e6)): (row.firing, row.n, row.total)
        for row in table.values()
    }
    assert got == wanted
    assert len(results) > len(wanted) > 20
    assert sum(late) == len(given_back) > 0
    assert merged == sorted(merged)


def test_upsert_needs_to_tell_firings_apart(spark: SparkSession, tmp_path: Path) -> None:
    files(tmp_path / "in", batches(1, 5))
    outputs = continuous(streamed(spark, tmp_path / "in")).with_outputs().aggregate(n=gw.count())
    with pytest.raises(errors.QueryError, match=r"with_firing_columns\(\), got n"):
        gw.write_stream(outputs, gw.upsert(lambda *_: None), str(tmp_path / "state"))


# ---- a sink of one's own


class Rows(gw.Sink):
    """Keeps the rows of every output and micro-batch, and dies after one that it has kept.

    Its parameters are three, so that the class could be called as a function is.
    """

    def __init__(self, column: str = "n", dies_in: int = -1, opens: Any = None) -> None:
        self.column = column
        self.dies_in = dies_in
        self.opens = opens
        self.calls: list[str] = []
        self.found: dict[tuple[str, int], list[Any]] = {}
        self.taken: dict[int, int] = {}

    def check(self, plan: Any) -> None:
        self.calls.append("check")
        if self.column not in plan.query.result_names:
            raise errors.QueryError("results need the column", value=self.column)

    def open(self, query: gw.typing.SinkQuery) -> gw.SinkWriter:
        self.calls.append("open")
        assert (query.key_columns, query.window_columns) == (("k",), ("window_start", "window_end"))
        assert query.schemas["result"].names == ["k", "window_start", "window_end", "n"]
        assert query.schemas["late"].names[-1] == "rejection_reason"
        if isinstance(self.opens, Exception):
            raise self.opens
        return RowsWriter(self) if self.opens is None else self.opens


class RowsWriter(gw.SinkWriter):
    def __init__(self, sink: Rows) -> None:
        self.sink = sink

    def begin(self, query: gw.typing.SinkQuery) -> None:
        assert (Path(query.checkpoint) / "gpu_windows").exists()  # it is this query's
        self.sink.calls.append("begin")

    def write(self, batch: gw.typing.SinkBatch) -> None:
        self.sink.calls.append(f"write {batch.number}")
        self.sink.taken[batch.number] = batch.rows
        for name, rows in batch.outputs.items():
            found = rows.collect()
            assert bool(found) == bool(batch.sizes[name])
            assert batch.read(name, 1).rdd.getNumPartitions() == 1
            self.sink.found[name, batch.number] = found
        if batch.number == self.sink.dies_in:
            raise KeyError("dies here")


def counted(spark: SparkSession, folder: Path, tables: list[pa.Table]) -> gw.typing.Outputs:
    files(folder, tables)
    return (
        windowed(streamed(spark, folder), ASSIGNERS["tumbling"])
        .with_outputs()
        .aggregate(n=gw.count())
    )


def test_a_sink_of_ones_own(spark: SparkSession, tmp_path: Path) -> None:
    """It is asked and opened at every start, and given all outputs of all micro-batches."""
    tables = batches(2, 100)
    outputs = counted(spark, tmp_path / "in", tables)
    sink, state, now = Rows(dies_in=1), tmp_path / "state", {"availableNow": True}
    with pytest.raises(Exception, match="dies here"):
        gw.write_stream(outputs, sink, state, trigger=now).awaitTermination()
    asked = ["check", "open", "begin"]
    assert sink.calls == [*asked, "write 0", "write 1"]
    sink.dies_in = -1
    before = sorted(sink.found.pop(("result", 1)))
    gw.write_stream(outputs, sink, state, trigger=now).awaitTermination()
    assert sink.calls == [*asked, "write 0", "write 1", *asked, "write 1"]
    assert sorted(sink.found["result", 1]) == before
    results, late = expected(outputs, tables)
    got = [row for (name, _), rows in sink.found.items() if name == "result" for row in rows]
    assert sorted((r.k, int(r.window_start.timestamp() * 1e6), r.n) for r in got) == sorted(
        (row["k"], row["window_start"], row["n"]) for row in results.to_pylist()
    )
    back = [row for (name, _), rows in sink.found.items() if name == "late" for row in rows]
    assert sorted(row.rejection_reason for row in back) == sorted(late[REASON].to_pylist())
    assert sum(sink.taken.values()) == 200
    assert len(got) > 20
    assert len(back) > 0


@pytest.mark.parametrize(
    ("sink", "error", "text", "calls"),
    [
        (Rows("m"), errors.QueryError, "results need the column, got m", ["check"]),
        (Rows(opens=KeyError("closed")), KeyError, "closed", ["check", "open"]),
        (
            Rows(opens=print),
            errors.QueryError,
            "a SinkWriter: that of Rows",
            ["check", "open"],
        ),
    ],
)
def test_what_a_sink_refuses_leaves_no_checkpoint(
    spark: SparkSession,
    tmp_path: Path,
    sink: Rows,
    error: type[Exception],
    text: str,
    calls: list[str],
) -> None:
    outputs = counted(spark, tmp_path / "in", batches(1, 5))
    with pytest.raises(error, match=text):
        gw.write_stream(outputs, sink, tmp_path / "state")
    assert sink.calls == calls
    assert not (tmp_path / "state").exists()


def test_what_goes_to_the_process_of_the_sink_is_small(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark Connect pickles it: no session, no DataFrame, and the plan once."""
    from pyspark import cloudpickle as untyped
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    given: list[Any] = []

    def keep(_: DataStreamWriter, engine: Any) -> DataStreamWriter:
        given.append(engine)
        raise KeyError("not started")

    monkeypatch.setattr(DataStreamWriter, "foreachBatch", keep)
    cloudpickle: Any = untyped
    files(tmp_path / "in", batches(1, 5))
    made = windowed(streamed(spark, tmp_path / "in"), ASSIGNERS["tumbling"])
    outputs: Any = made.with_firing_columns().with_outputs().aggregate(n=gw.count())
    alone = len(cloudpickle.dumps(outputs.reader))
    sinks: tuple[Any, ...] = (tmp_path / "out", gw.upsert(print), lambda *_: None)
    for number, sink in enumerate(sinks):
        with pytest.raises(KeyError, match="not started"):
            gw.write_stream(outputs, sink, tmp_path / str(number))
        sent = cloudpickle.dumps(given[-1])
        assert len(sent) < alone + 4_000
        again = cloudpickle.loads(sent)
        assert again.job.stages[0].plan is again.reader.plan
        assert type(again.writer) is type(given[-1].writer)
    assert len(given) == 3


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"sink": None}, "a sink is a path, or a function of results, late rows, number, got None"),
        ({"sink": 5}, "a sink is a path.*got 5"),
        ({"sink": lambda results, late: None}, r"rows, number, got <lambda>\(results, late\)"),
        ({"sink": Rows}, "a sink is a path.*got <class .*Rows"),
        ({"trigger": "availableNow"}, "a trigger is a mapping.*got 'availableNow'"),
        ({"keep": 1}, "keep is a number of commits, at least 2.*got 1"),
        ({"keep": True}, "keep is a number of commits.*got True"),
        ({"keep": 101}, r"keep is at most 100, .*\(spark.sql.streaming.minBatches.*got 101"),
    ],
)
def test_what_cannot_be_written_to_is_refused_before_anything_is_there(
    spark: SparkSession, tmp_path: Path, given: dict[str, Any], text: str
) -> None:
    files(tmp_path / "in", batches(1, 5))
    outputs = continuous(streamed(spark, tmp_path / "in")).with_outputs().aggregate(n=gw.count())
    state = tmp_path / "state"
    with pytest.raises(errors.QueryError, match=text):
        gw.write_stream(outputs, checkpoint=state, **{"sink": tmp_path / "out", **given})
    with pytest.raises(errors.UnknownArgumentError, match="did you mean availableNow, got avail"):
        gw.write_stream(outputs, tmp_path / "out", state, trigger={"availablenow": True})
    assert not state.exists()


def test_a_function_may_need_side_outputs() -> None:
    """It is taken, for a query that has some; a query that has none refuses it."""

    def sink(results: Any, late: Any, number: int, *, sides: Any) -> None:
        del results, late, number, sides

    keyed = gw.stream(batches(1, 5)[0]).event_time("ts", gw.WatermarkStrategy()).key_by("k")
    planned = keyed.window(ASSIGNERS["tumbling"]).with_outputs().aggregate(n=gw.count()).plan
    with pytest.raises(errors.QueryError, match=r"results, late rows, number, got sink\(.*sides"):
        FunctionSink(sink).check(planned)


def test_functions_are_told_when_a_micro_batch_was_planned() -> None:
    """Those that ask for it: the number alone comes again from an older copy of a checkpoint."""
    told: list[Any] = []

    def sink(results: Any, late: Any, number: int, planned_ms: int | None) -> None:
        told.append((results, late, number, planned_ms))

    def merge(rows: Any, on: Any, number: int, *, planned_ms: int | None) -> None:
        told.append((rows, on, number, planned_ms))

    def late(rows: Any, number: int, planned_ms: int | None) -> None:
        told.append((rows, number, planned_ms))

    batch = SinkBatch(
        session=cast("SparkSession", None),
        number=7,
        rows=3,
        sizes={"result": 1, "late": 1},
        read=lambda name, _: cast("DataFrame", name),
        planned_ms=1_000,
    )
    keyed = gw.stream(batches(1, 5)[0]).event_time("ts", gw.WatermarkStrategy()).key_by("k")
    planned = keyed.window(ASSIGNERS["tumbling"]).with_outputs().aggregate(n=gw.count()).plan
    FunctionSink(sink).check(planned)
    FunctionSink(sink).write(batch)
    UpsertWriter(gw.upsert(merge, late=late), Replacement(("k",), fires=False)).write(batch)
    UpsertWriter(
        gw.upsert(lambda *given: told.append(given)), Replacement(("k",), fires=False)
    ).write(batch)
    assert told == [
        ("result", "late", 7, 1_000),
        ("result", ("k",), 7, 1_000),
        ("late", 7, 1_000),
        ("result", ("k",), 7),
    ]


def test_an_upsert_takes_functions() -> None:
    upsert: Any = gw.upsert
    with pytest.raises(errors.QueryError, match=r"results, columns, number, got <lambda>\(rows\)"):
        upsert(lambda rows: None)
    with pytest.raises(errors.QueryError, match=r"function of late rows, number, got 'late'"):
        upsert(min, late="late")


def test_a_session_with_our_settings(spark: SparkSession) -> None:
    ours = {"spark.sql.session.timeZone": "Asia/Kathmandu", "spark.sql.ansi.enabled": "false"}
    before = {name: spark.conf.get(name, None) for name in (*ours, *SETTINGS)}
    zone, ansi = ours
    found = gw.session(time_zone=ours[zone], config={ansi: ours[ansi]})
    try:
        assert {name: found.conf.get(name) for name in before} == {**ours, **SETTINGS}
    finally:
        for name, value in before.items():
            if value is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, value)
