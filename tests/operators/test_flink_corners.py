"""Corners of Flink's windows that its own tests show, and the recorded scenarios do not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import gpu_windows as gw
from gpu_windows import errors
from gpu_windows.functions.process import Process
from gpu_windows.functions.window import Reduce
from gpu_windows.vocabulary.windows import GlobalWindows, TimeWindow
from tests.lanes import quick
from tests.operators.driven import Driven
from tests.planning.queries import rows_of
from tests.spark_glue.stream_runs import files, results_in, run_to_the_end

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECOND = 1_000_000
WATERMARKS = gw.WatermarkStrategy.for_monotonous_timestamps()

engines = pytest.mark.parametrize("engine", ["auto", "reference"])
put_away = pytest.mark.parametrize("put_away", [False, True])


@engines
@put_away
def test_dynamic_gaps_of_processing_time(engine: Any, put_away: bool) -> None:
    """WindowOperatorTest.testDynamicProcessingTimeSessionWindows."""
    assigner = gw.ProcessingTimeSessionWindows.with_dynamic_gap("gap")
    told = Driven(assigner, engine=engine, put_away=put_away)

    def at(time: int, *rows: tuple[str, int]) -> list[Any]:
        fired = told.processing_time(time)
        late = told.rows(*((key, None, value, 1000 * value) for key, value in rows))
        assert late == []
        return fired

    assert at(10, ("a", 3)) == []
    assert at(5000, ("b", 2)) == [("a", 10, 3010, [3])]
    assert at(6000, ("b", 2)) == []
    assert at(8999) == [("b", 5000, 8000, [2, 2])]
    assert at(9000, ("b", 2)) == at(10000, ("b", 2)) == []
    assert at(10500, ("b", 1)) == []  # ends before the session does
    assert at(11998) == []
    assert at(12999) == [("b", 9000, 12000, [2, 2, 1])]
    assert at(13000, ("b", 1)) == at(13500, ("b", 1)) == at(14000, ("b", 2)) == []
    assert at(16999) == [("b", 13000, 16000, [1, 1, 2])]
    assert told.left == {}


@engines
@put_away
def test_a_row_with_a_bad_gap_of_processing_time_is_given_back(engine: Any, put_away: bool) -> None:
    """Flink throws there: IllegalArgumentException, Dynamic session time gap must satisfy."""
    assigner = gw.ProcessingTimeSessionWindows.with_dynamic_gap("gap")
    told = Driven(assigner, engine=engine, put_away=put_away)
    assert told.processing_time(10) == []
    told.rows(("a", None, 1, 0), ("a", None, 2, 5), ("a", None, 3, None), ("a", None, 4, -7))
    told.rows(("a", None, 5, 2**63 - 10))  # ends behind the last tick
    assert told.processing_time(15) == [("a", 10, 15, [2])]
    assert (told.counters.rows, told.counters.invalid_session_gap) == (5, 4)
    assert told.left == {}


@engines
@put_away
def test_a_global_window_that_fires_by_intervals(engine: Any, put_away: bool) -> None:
    """WindowOperatorTest.testContinuousWatermarkTrigger: where there are new rows or not."""
    trigger = gw.ContinuousEventTimeTrigger(3000)
    told = Driven(GlobalWindows(), trigger=trigger, engine=engine, put_away=put_away)
    first, second = ("first", None, None), ("second", None, None)
    told.rows(("second", 3000, 1), ("second", 3999, 1), ("first", 20, 1), ("first", 0, 1))
    told.rows(("first", 999, 1), ("second", 1998, 1), ("second", 1999, 1), ("second", 1000, 1))
    assert told.watermark(1000) == told.watermark(2000) == []
    assert told.watermark(3000) == [(*first, [1] * 3)]
    assert told.watermark(4000) == told.watermark(5000) == []
    assert sorted(told.watermark(6000)) == [(*first, [1] * 3), (*second, [1] * 5)]
    assert told.watermark(7000) == told.watermark(8000) == []


class PointSessions(gw.functions.MergingWindowAssigner):
    """Sessions; a row of value 33 opens none, but is in one that is there."""

    columns = ("value",)

    def assign_windows(self, row: Any, timestamp: int, context: Any) -> list[TimeWindow]:
        return [TimeWindow(timestamp, timestamp + (0 if row["value"] == 33 else 3000))]


class Total(gw.functions.ProcessWindowFunction):
    def process(self, key: Any, context: Any, rows: pa.Table) -> list[dict[str, object]]:
        return [{"total": sum(rows["value"].to_pylist())}]


@put_away
def test_windows_without_length(put_away: bool) -> None:
    """WindowOperatorTest.testPointSessions."""
    function = Process(Total(), ("value",), pa.schema([("total", pa.int64())]))
    told = Driven(PointSessions(), function=function, put_away=put_away)
    assert told.rows(("k2", 0, 1), ("k2", 1000, 33)) == []
    assert told.rows(("k2", 2500, 33), ("k1", 10, 1), ("k1", 1000, 2), ("k1", 2500, 33)) == []
    assert told.watermark(12000) == [("k2", 0, 3000, 67), ("k1", 10, 4000, 36)]
    assert told.rows(("k2", 12002, 33)) == []
    assert told.watermark(12003) == [("k2", 12002, 12002, 33)]  # alone
    assert told.left == {}


class OfReduced(gw.functions.ProcessWindowFunction):
    """The reduced row, and where its window begins."""

    def process(self, key: Any, context: Any, rows: Any) -> list[dict[str, object]]:
        assert len(rows) == 1
        (total,) = list(rows["v"])
        return [{"begin": context.window.start // SECOND, "total": int(str(total))}]


SEVEN = pa.table(
    {
        "ts": pa.array([s * SECOND for s in (1, 2, 3, 6, 8, 9, 15)]).cast(
            pa.timestamp("us", "UTC")
        ),
        "k": [*"aababba"],
        "v": [1, 2, 3, 6, 8, 9, 15],
    }
)
OF_REDUCED = pa.schema([("begin", pa.int64()), ("total", pa.int64())])


def add(left: Any, right: Any) -> dict[str, Any]:
    return {"v": left["v"] + right["v"]}


def reduced(source: Any, rows: Any, **options: Any) -> Any:
    keyed = gw.stream(source).event_time("ts", WATERMARKS).key_by("k")
    windowed = keyed.window(gw.EventTimeSessionWindows.with_gap("2 s")).arrival_order("v")
    return windowed.options(**options).process(
        OfReduced(), ["v"], output=OF_REDUCED, rows=rows, reduce=add
    )


REDUCED = [("a", 1, 3), ("a", 6, 6), ("a", 15, 15), ("b", 3, 3), ("b", 8, 17)]


@engines
@pytest.mark.parametrize("rows", ["arrow", "pandas"])
def test_a_process_function_over_a_reduced_row(engine: str, rows: str) -> None:
    """PyFlink's test_window_reduce_process."""
    found = reduced(SEVEN, rows, engine=engine).drop_columns(["window_start", "window_end"])
    assert sorted(rows_of(found)) == REDUCED


@pytest.mark.spark
def test_a_process_function_over_a_reduced_row_on_spark(spark: SparkSession) -> None:
    found = reduced(spark.createDataFrame(SEVEN), "arrow").drop("window_start", "window_end")
    assert sorted(rows_of(found.toArrow())) == REDUCED


@put_away
def test_a_reduced_row_is_what_is_kept(put_away: bool) -> None:
    def adds(left: Any, right: Any) -> dict[str, Any]:
        return {"value": left["value"] + right["value"]}

    function = Process(Total(), ("value",), pa.schema([("total", pa.int64())]), reduce=adds)
    assert function.incremental == Reduce(adds, ("value",))
    told = Driven(gw.EventTimeSessionWindows(5), function=function, put_away=put_away)
    assert not told.plan.query.keeps_rows
    told.rows(("a", 0, 1), ("a", 8, 2), ("b", 1, 5))
    told.rows(("a", 4, 4))
    assert sorted(told.watermark(30)) == [("a", 0, 13, 7), ("b", 1, 6, 5)]


def test_what_a_process_function_cannot_see() -> None:
    keyed = gw.stream(SEVEN).event_time("ts", WATERMARKS).key_by("k")
    windowed = keyed.window(gw.TumblingEventTimeWindows.of("2 s"))
    with pytest.raises(errors.QueryError, match="not both, got n"):
        windowed.process(
            OfReduced(), ["v"], output=OF_REDUCED, reduce=add, aggregates={"n": gw.count()}
        )
    with pytest.raises(errors.QueryError, match="reduce= is a function of two rows, got 3"):
        windowed.process(OfReduced(), ["v"], output=OF_REDUCED, reduce=3)  # type: ignore[arg-type]
    with pytest.raises(errors.QueryError, match="a reduce function must return exactly v"):
        windowed.process(OfReduced(), ["v"], output=OF_REDUCED, reduce=lambda *_: {})


@engines
@put_away
def test_a_window_that_is_over_before_its_first_row(engine: Any, put_away: bool) -> None:
    """As SQL's EMIT: it has not fired at its end, so each row fires, whatever the late part says.

    Source: EventTimeTriggers.AfterEndOfWindowEarlyAndLate of flink-table-runtime.
    """
    trigger = gw.EarlyAndLateTrigger.of(
        early=gw.CountTrigger.of(3), late=gw.ContinuousProcessingTimeTrigger(1000)
    )
    told = Driven(
        gw.TumblingEventTimeWindows(3000),
        trigger=trigger,
        allowed_lateness=3000,
        engine=engine,
        put_away=put_away,
    )
    told.processing_time(1)
    assert told.rows(("on time", 2000, 1), ("on time", 2001, 2)) == []
    assert told.watermark(3500) == [("on time", 0, 3000, [1, 2])]
    assert told.rows(("k", 2001, 7)) == [("k", 0, 3000, [7])]
    assert told.rows(("k", 2002, 8)) == [("k", 0, 3000, [7, 8])]
    assert told.rows(("on time", 2002, 3)) == []  # this one has: its late part is asked
    assert told.processing_time(1000) == [("on time", 0, 3000, [1, 2, 3])]
    assert told.watermark(5999) == []
    assert told.left == {}


@engines
@put_away
def test_a_merged_session_has_not_fired_at_its_end(engine: Any, put_away: bool) -> None:
    trigger = gw.EarlyAndLateTrigger.of(late=gw.CountTrigger.of(2))
    told = Driven(
        gw.EventTimeSessionWindows(10),
        trigger=trigger,
        allowed_lateness=100,
        engine=engine,
        put_away=put_away,
    )
    told.rows(("a", 0, 1))
    assert told.watermark(20) == [("a", 0, 10, [1])]
    assert told.rows(("a", 0, 2)) == []  # the late part counts
    assert told.rows(("a", 5, 3)) == [("a", 0, 15, [1, 2, 3])]  # another window, which is over
    assert told.rows(("a", 12, 4)) == []  # and one that is not
    assert told.watermark(21) == [("a", 0, 22, [1, 2, 3, 4])]
    assert told.rows(("a", 3, 5)) == [("a", 0, 22, [1, 2, 3, 4, 5])]  # the second that it counts
    assert told.watermark(121) == []
    assert told.left == {}


SELF = pa.table(
    {
        "ts": pa.array([0, SECOND, 2 * SECOND]).cast(pa.timestamp("us", "UTC")),
        "k": ["a"] * 3,
        "v": ["x", "y", "z"],
    }
)


def joined_with_itself(source: Any) -> Any:
    keyed = gw.stream(source).event_time("ts", WATERMARKS).key_by("k")
    windowed = keyed.join(keyed).window(gw.TumblingEventTimeWindows.of("3 s"))
    return windowed.options(device="cpu").with_outputs().select({"l": "v"}, {"r": "v"})


def together_with_itself(source: Any) -> gw.typing.Outputs:
    timed = gw.stream(source).event_time("ts", WATERMARKS)
    windowed = timed.union(timed).key_by("k").window(gw.TumblingEventTimeWindows.of("2 s"))
    return (
        windowed.options(device="cpu", shards=2)
        .with_outputs()
        .aggregate(n=gw.count(), last=gw.max("ts"))
    )


PAIRS = sorted((left, right) for left in "xyz" for right in "xyz")


def test_a_table_with_itself() -> None:
    """CoGroupJoinITCase.testSelfJoin, TimestampITCase.testSelfUnionWatermarkPropagation."""
    found = joined_with_itself(SELF).result()
    assert sorted(zip(found["l"].to_pylist(), found["r"].to_pylist(), strict=True)) == PAIRS
    assert together_with_itself(SELF).result()["n"].to_pylist() == [4, 2]


@pytest.mark.spark
def test_a_batch_with_itself(spark: SparkSession) -> None:
    frame = spark.createDataFrame(SELF)
    assert sorted(joined_with_itself(frame).result().select("l", "r").collect()) == PAIRS
    assert sorted(together_with_itself(frame).result().toArrow()["n"].to_pylist()) == [2, 4]


@pytest.mark.spark
@pytest.mark.parametrize("joined", quick([False, True]))
def test_a_stream_with_itself(spark: SparkSession, tmp_path: Path, joined: bool) -> None:
    """The source is read twice, as Flink's would be sent twice; the watermark is one."""
    minute = pa.scalar(60 * SECOND, pa.duration("us"))
    later = SELF.set_column(0, "ts", pc.add(SELF["ts"], minute)).slice(0, 1)
    files(tmp_path / "in", [SELF, later])
    schema = spark.createDataFrame(SELF).schema
    source = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    stream = source.parquet(str(tmp_path / "in"))
    run_to_the_end((joined_with_itself if joined else together_with_itself)(stream), tmp_path)
    found = results_in(spark, tmp_path)
    if joined:
        assert sorted(row[3:] for row in found) == PAIRS
    else:
        assert sorted(row[3] for row in found) == [2, 4]
