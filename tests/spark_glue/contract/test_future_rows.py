"""A guard against rows of the far future: they are rejected, and make no other row late."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

import gpu_windows as gw
from gpu_windows import errors
from gpu_windows.checkpointing.commit_log import CommitLog
from gpu_windows.checkpointing.state_commit import StateCommit
from gpu_windows.planning.facts import fact_of
from gpu_windows.planning.own_columns import REASON
from gpu_windows.spark_glue.contract.future_rows import (
    FUTURE,
    are_rejected,
    emit_rejected,
    split_future_rows,
)
from gpu_windows.spark_glue.contract.watermarks import progress_columns
from tests.lanes import quick
from tests.planning.queries import rows_of
from tests.spark_glue.stream_runs import (
    AGGREGATES,
    BEGIN,
    SECOND,
    WATERMARKS,
    batches,
    expected,
    files,
    results_in,
    run_to_the_end,
    streamed,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

GUARDED = WATERMARKS.guard("1 hour")
INSTANT = pa.timestamp("us", "UTC")


def now() -> int:
    return time.time_ns() // 1_000


def row(ticks: int, key: int = 3) -> pa.Table:
    """One row, with the columns of `batches`."""
    of = batches(1, 1)[0].schema
    values = {"ts": ticks, "k": key, "v": 0.25, "text": "far", "seq": 10_000}
    arrays = [
        pa.array([values[field.name]], pa.int64() if field.name == "ts" else field.type)
        for field in of
    ]
    return pa.table(
        [array.cast(field.type) for array, field in zip(arrays, of, strict=True)], schema=of
    )


def windowed(source: Any, watermarks: gw.WatermarkStrategy = GUARDED) -> gw.typing.WindowedStream:
    windows = gw.TumblingEventTimeWindows.of("20 seconds")
    keyed = gw.stream(source).event_time("ts", watermarks).key_by("k")
    return keyed.window(windows).arrival_order("seq").options(device="cpu", shards=5)


def reasons_in(spark: SparkSession, folder: Path) -> list[tuple[str, str]]:
    back = gw.read_output(spark, folder / "out", "late").toArrow()
    return sorted(zip(back["text"].to_pylist(), back[REASON].to_pylist(), strict=True))


# ---- the strategy


def test_what_it_says() -> None:
    assert GUARDED.describe() == "latest row - 5 s, on streams without rows more than 1 h ahead"
    assert GUARDED.is_guarded
    assert not WATERMARKS.is_guarded
    assert fact_of(GUARDED.in_state) == fact_of(WATERMARKS.in_state) == fact_of(WATERMARKS)


def test_what_is_refused() -> None:
    with pytest.raises(errors.InvalidDurationError, match="must not be negative, got -1 s"):
        WATERMARKS.guard("-1 second")
    with pytest.raises(errors.QueryError, match=r"a watermark that follows rows.*got none"):
        gw.WatermarkStrategy.no_watermarks().guard("1 hour")


def test_a_bounded_input_has_none() -> None:
    table = pa.concat_tables([*batches(1), row(now() + 7_200 * SECOND)])
    outputs = windowed(table).with_outputs().aggregate(**AGGREGATES)
    assert outputs.result().equals(
        windowed(table, WATERMARKS).with_outputs().aggregate(**AGGREGATES).result()
    )
    assert set(outputs.rejected()[REASON].to_pylist()) == {"null_timestamp"}
    assert "on streams without rows more than 1 h ahead" in outputs.explain()


# ---- packing tasks and shards


def test_rows_are_set_aside() -> None:
    rows = pa.table({"ts": [1, 2, 3], FUTURE: [False, True, False]})
    kept, aside = split_future_rows([rows])
    assert kept.to_pydict() == {"ts": [1, 3]}
    assert aside.to_pydict() == {"ts": [2], REASON: ["future_timestamp"]}
    assert (are_rejected(kept), are_rejected(aside)) == (False, True)
    (same,) = split_future_rows([pa.table({"ts": [1], FUTURE: [False]})])
    assert same.to_pydict() == {"ts": [1]}
    emission = emit_rejected([aside, aside], pa.schema([("n", pa.int64())]))
    assert (emission.counters.rows, emission.counters.future_timestamp) == (2, 2)
    assert emission.late["ts"].to_pylist() == [2, 2]


def test_queries_that_need_no_time_reject_nothing() -> None:
    keyed = gw.stream(batches(1)[0]).event_time("ts", GUARDED).key_by("k")
    assert (
        progress_columns(keyed.count_window(5).with_outputs().aggregate(n=gw.count()).plan.query)
        == ()
    )
    assert progress_columns(
        windowed(batches(1)[0]).with_outputs().aggregate(n=gw.count()).plan.query
    ) == (FUTURE,)


# ---- streams


def test_columns_of_these_names_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    clash = streamed(spark, tmp_path).withColumnRenamed("text", "__INPUT")
    timed = gw.stream(clash).event_time("ts", WATERMARKS)
    with pytest.raises(errors.NameClashError, match="used inside gpu_windows"):
        timed.union(timed)
    joined = timed.key_by("k").interval_join(timed.key_by("k")).between("0 s", "1 s")
    with pytest.raises(errors.NameClashError, match="used inside gpu_windows"):
        joined.with_outputs().select({"__input": "v"}, ["v"])


@pytest.mark.parametrize("kind", quick(["partials", "rows"], nightly=["partials"]))
def test_it_makes_no_other_row_late(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    good = batches(3)
    far, end = row(now() + 7_200 * SECOND), row((1 << 62) - 1)
    files(tmp_path / "in", [good[0], pa.concat_tables([far, good[1], end, far]), good[2]])
    made = windowed(streamed(spark, tmp_path / "in"))
    made = made if kind == "partials" else made.evictor(gw.CountEvictor.of(3))
    outputs = made.with_outputs().aggregate(**AGGREGATES)
    run_to_the_end(outputs, tmp_path)
    results, late = expected(outputs, good)
    assert results_in(spark, tmp_path) == rows_of(results)
    by_operator = list(zip(late["text"].to_pylist(), late[REASON].to_pylist(), strict=True))
    wanted = [*by_operator, *[("far", "future_timestamp")] * 3]
    assert reasons_in(spark, tmp_path) == sorted(wanted)


@pytest.mark.slow
def test_the_same_rows_are_rejected_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though the clock has gone on: a micro-batch that runs again keeps its time."""
    at = now() + 25 * SECOND
    files(tmp_path / "in", [row(BEGIN), row(at), row(BEGIN + 60 * SECOND)])
    outputs = windowed(streamed(spark, tmp_path / "in"), WATERMARKS.guard("0 s"))
    reasons: list[tuple[int, list[str]]] = []

    def take(_: DataFrame, back: DataFrame, number: int) -> None:
        reasons.append((number, [each[REASON] for each in back.collect()]))

    def run() -> None:
        made = outputs.with_outputs().aggregate(n=gw.count(), t=gw.first("text"))
        query = gw.write_stream(made, take, tmp_path / "state", trigger={"availableNow": True})
        query.awaitTermination()

    add = CommitLog.add

    def dying(self: CommitLog, commit: StateCommit) -> None:
        if commit.number == 1:
            raise RuntimeError("died before the commit")
        add(self, commit)

    with monkeypatch.context() as patched:
        patched.setattr(CommitLog, "add", dying)
        with pytest.raises(Exception, match="died before the commit"):
            run()
    assert reasons == [(0, [])]
    assert now() < at, "the machine is too slow for this test"
    time.sleep(max(0, (at - now()) / SECOND) + 0.5)
    run()
    assert reasons == [(0, []), (1, ["future_timestamp"]), (2, [])]


@pytest.mark.slow
def test_it_may_be_put_up_later(spark: SparkSession, tmp_path: Path) -> None:
    good = batches(2)
    files(tmp_path / "in", good[:1])
    rows = streamed(spark, tmp_path / "in")
    run_to_the_end(windowed(rows, WATERMARKS).with_outputs().aggregate(**AGGREGATES), tmp_path)
    later = pa.concat_tables([good[1], row(now() + 7_200 * SECOND)])
    pq.write_table(later, tmp_path / "in" / "later.parquet")
    outputs = windowed(rows).with_outputs().aggregate(**AGGREGATES)
    run_to_the_end(outputs, tmp_path)
    results, _ = expected(outputs, good)
    assert results_in(spark, tmp_path) == rows_of(results)
    assert ("far", "future_timestamp") in reasons_in(spark, tmp_path)


@pytest.mark.thorough
def test_inputs_have_guards_of_their_own(spark: SparkSession, tmp_path: Path) -> None:
    ahead = row(now() + 7_200 * SECOND)
    files(tmp_path / "a", [row(BEGIN, 1), ahead, row(BEGIN + 30 * SECOND, 1)])
    files(tmp_path / "b", [row(BEGIN, 2), row(BEGIN + SECOND, 2), row(BEGIN + 30 * SECOND, 2)])
    a, b = (streamed(spark, tmp_path / name) for name in "ab")
    free = gw.stream(b).event_time("ts", WATERMARKS)
    both = free.union(gw.stream(a).event_time("ts", GUARDED))
    again = streamed(spark, tmp_path / "b")
    three = both.union(gw.stream(again).event_time("ts", WATERMARKS))
    windows = gw.TumblingEventTimeWindows.of("20 seconds")
    outputs = (
        three.key_by("k").window(windows).with_outputs().aggregate(n=gw.count(), t=gw.first("text"))
    )
    run_to_the_end(outputs, tmp_path)
    found = {(each.k, each.n) for each in gw.read_output(spark, tmp_path / "out").collect()}
    assert found == {(1, 1), (2, 4)}
    assert reasons_in(spark, tmp_path) == [("far", "future_timestamp")]


@pytest.mark.thorough
def test_a_side_of_a_join_has_one(spark: SparkSession, tmp_path: Path) -> None:
    ahead = row(now() + 7_200 * SECOND)
    files(tmp_path / "a", [row(BEGIN), ahead, row(BEGIN + 30 * SECOND)])
    files(tmp_path / "b", [row(BEGIN), row(BEGIN + SECOND), row(BEGIN + 30 * SECOND)])
    a, b = (streamed(spark, tmp_path / name) for name in "ab")
    left = gw.stream(a).event_time("ts", GUARDED).key_by("k")
    right = gw.stream(b).event_time("ts", WATERMARKS).key_by("k")
    joined = (
        left.interval_join(right).between("0 s", "2 s").with_outputs().select(["v"], ["v", "seq"])
    )
    run_to_the_end(joined, tmp_path)
    assert gw.read_output(spark, tmp_path / "out").count() == 3
    back = gw.read_output(spark, tmp_path / "out", "late").collect()
    assert [(each.is_left, each[REASON]) for each in back] == [(True, "future_timestamp")]


@pytest.mark.thorough
def test_a_carried_watermark_far_ahead_does_nothing(spark: SparkSession, tmp_path: Path) -> None:
    def carrying(ticks: int, carried: int | None) -> pa.Table:
        column = pa.array([carried], pa.int64()).cast(INSTANT)
        return row(ticks).append_column("wm", column)

    far = now() + 7_200 * SECOND
    tables = [
        carrying(BEGIN, far),
        carrying(far, BEGIN + 60 * SECOND),
        carrying(BEGIN + SECOND, BEGIN + 2 * SECOND),
        carrying(BEGIN + SECOND, None),
        carrying(BEGIN + 3 * SECOND, None),
    ]
    files(tmp_path / "in", tables)
    schema = spark.createDataFrame(tables[0]).schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    carried = gw.WatermarkStrategy.for_punctuated("wm").guard("1 hour")
    made = windowed(reader.parquet(str(tmp_path / "in")), carried)
    one_second = gw.TumblingEventTimeWindows.of("1 second")
    keyed = gw.stream(reader.parquet(str(tmp_path / "in"))).event_time("ts", carried).key_by("k")
    outputs = keyed.window(one_second).with_outputs().aggregate(n=gw.count(), t=gw.first("text"))
    run_to_the_end(outputs, tmp_path)
    assert (
        "carried by wm, on streams without" in made.with_outputs().aggregate(n=gw.count()).explain()
    )
    assert [each.n for each in gw.read_output(spark, tmp_path / "out").collect()] == [1, 1]
    assert sorted(reason for _, reason in reasons_in(spark, tmp_path)) == [
        "future_timestamp",
        "late",
    ]
