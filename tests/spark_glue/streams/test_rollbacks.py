"""A query that goes back to a commit gives what it gave before: files, two inputs, ticks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException

import gpu_windows as gw
from gpu_windows.checkpoints import copy_checkpoint, read_commits, roll_back
from gpu_windows.errors import OutputError, QueryError, StateMismatchError
from tests.lanes import quick
from tests.spark_glue.stream_runs import ASSIGNERS, WATERMARKS, batches, files, streamed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOW = {"availableNow": True}
LONG = pa.int64()


class Late(gw.functions.KeyedProcessFunction):
    """The rows of a key so far, half a minute after each of them."""

    output = pa.schema([("rows", LONG), ("at", LONG)])
    state: ClassVar = {"rows": gw.functions.ValueStateDescriptor(LONG)}

    def process_element(self, row: Any, context: Any) -> None:
        del row
        rows = context.state("rows")
        rows.update(rows.value(0) + 1)
        context.register_event_time_timer(context.timestamp + 30_000_000)

    def on_timer(self, time: int, context: Any) -> Iterator[dict[str, int]]:
        yield {"rows": context.state("rows").value(), "at": time}


def timed(spark: SparkSession, folder: Path, per_batch: int = 1) -> Any:
    rows = streamed(spark, folder, per_batch=per_batch)
    return gw.stream(rows).event_time("ts", WATERMARKS)


def windows_of(stream: Any) -> gw.typing.Outputs:
    windows = stream.key_by("k").window(ASSIGNERS["tumbling"]).options(device="cpu", shards=2)
    outputs: gw.typing.Outputs = windows.with_outputs().aggregate(n=gw.count(), total=gw.sum("v"))
    return outputs


def mentioned_twice(spark: SparkSession, folder: Path) -> gw.typing.Outputs:
    """One source has two offsets, and the next one the second place."""
    once = timed(spark, folder / "in")
    return windows_of(once.union(once).union(timed(spark, folder / "more", 2)))


def staged(spark: SparkSession, folder: Path) -> gw.typing.Outputs:
    minutes = windows_of(timed(spark, folder / "in"))
    coarse = gw.stream_results(minutes, "minutes").key_by("k").window(ASSIGNERS["lateness"])
    return (
        coarse.options(device="cpu", shards=2)
        .with_outputs()
        .aggregate(windows=gw.count(), n=gw.sum("n"))
    )


def with_timers(spark: SparkSession, folder: Path) -> gw.typing.Outputs:
    keyed = timed(spark, folder / "in").key_by("k")
    outputs: gw.typing.Outputs = keyed.with_outputs().process(
        Late(), ["v"], output=Late.output, shards=2
    )
    return outputs


QUERIES: dict[str, Callable[[Any, Path], gw.typing.Outputs]] = {
    "windows": lambda spark, folder: windows_of(timed(spark, folder / "in")),
    "two inputs": lambda spark, folder: windows_of(
        timed(spark, folder / "in").union(timed(spark, folder / "more", 2))
    ),
    "mentioned twice": mentioned_twice,
    "stages": staged,
    "timers": with_timers,
}


def run(outputs: gw.typing.Outputs, folder: Path, sink: Any = None, **given: Any) -> None:
    out = folder / "out" if sink is None else sink
    state = folder / "state"
    gw.write_stream(outputs, out, state, trigger=NOW, **given).awaitTermination()


def written(spark: SparkSession, folder: Path) -> list[Counter[Any]]:
    """Return the results, and the late rows, each with the number of its micro-batch."""
    both = [
        gw.read_output(spark, folder / "out", name, micro_batch="b") for name in ("result", "late")
    ]
    return [Counter(map(tuple, rows.collect())) for rows in both]


@pytest.mark.parametrize(
    "name", quick(QUERIES, nightly=[name for name in QUERIES if name != "stages"])
)
def test_a_query_that_goes_back_gives_the_same_in_the_same_micro_batches(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    """But for the first query, Spark's log of files is compacted between both commits."""
    count = 4 if name == "windows" else 12
    tables = batches(count, 60)
    files(tmp_path / "in", tables)
    files(tmp_path / "more", [each.slice(7, 20) for each in tables])
    run(QUERIES[name](spark, tmp_path), tmp_path, keep=30)
    before = written(spark, tmp_path)
    roll_back(tmp_path / "state", count - 2, output=tmp_path / "out")
    fewer = written(spark, tmp_path)
    assert all(some <= every for some, every in zip(fewer, before, strict=True))
    assert max(each[-1] for each in fewer[0]) < count - 2 < max(each[-1] for each in before[0])
    run(QUERIES[name](spark, tmp_path), tmp_path, keep=30)
    assert written(spark, tmp_path) == before


@pytest.mark.slow
def test_a_query_goes_back_to_before_its_first_row_and_is_not_given_to_another_path(
    spark: SparkSession, tmp_path: Path
) -> None:
    files(tmp_path / "in", batches(3, 60))

    def outputs() -> gw.typing.Outputs:
        return QUERIES["windows"](spark, tmp_path)

    run(outputs(), tmp_path, keep=5)
    before = written(spark, tmp_path)
    assert roll_back(tmp_path / "state", 0, again=True) == 4
    with pytest.raises(OutputError, match="a query with another checkpoint"):
        run(outputs(), tmp_path, keep=5)
    run(outputs(), tmp_path, gw.ParquetSink(tmp_path / "out", takes_over=True), keep=8)
    assert written(spark, tmp_path) == [each + each for each in before]
    roll_back(tmp_path / "state", 4, output=tmp_path / "out")
    assert written(spark, tmp_path) == [Counter(), Counter()]
    run(outputs(), tmp_path)
    assert written(spark, tmp_path) == before
    assert len(read_commits(tmp_path / "state")) == 2


@pytest.mark.slow
def test_a_source_that_keeps_no_log_and_ticks_go_back(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's rate source has only when it began; what the clock makes due comes anew."""
    from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

    def outputs() -> gw.typing.Outputs:
        rate = spark.readStream.format("rate").option("rowsPerSecond", 10).load()
        rows = rate.select("value", "timestamp", (F.col("value") % 3).alias("k"))
        keyed = gw.stream(rows).processing_time().key_by("k")
        windows = keyed.window(gw.TumblingProcessingTimeWindows.of("1 second"))
        return (
            windows.options(shards=2)
            .with_outputs()
            .aggregate(n=gw.count(), values=gw.collect_list("value"))
        )

    def values() -> list[int]:
        rows = gw.read_output(spark, tmp_path / "out").collect()
        return sorted(value for row in rows for value in row["values"])

    def run_for_some_micro_batches(more: int) -> None:
        out, state = tmp_path / "out", tmp_path / "state"
        query = gw.write_stream(outputs(), out, state, keep=50)
        end = (read_commits(state)[-1].batch or 0) + more
        while (read_commits(state)[-1].batch or 0) < end:
            assert not query.awaitTermination(1)
        query.stop()

    run_for_some_micro_batches(3)
    commits = read_commits(tmp_path / "state")
    target = next(each for each in commits if each.batch is not None and each.rows)
    roll_back(tmp_path / "state", target.sequence, output=tmp_path / "out")
    run_for_some_micro_batches(3)
    found = values()
    assert found == list(range(len(found)))
    assert len(found) > 20


@pytest.mark.thorough
def test_a_query_that_runs_meanwhile_ends_and_the_next_start_says_what_to_do(
    spark: SparkSession, tmp_path: Path
) -> None:
    tables = batches(6, 60)
    files(tmp_path / "in", tables)

    def outputs() -> gw.typing.Outputs:
        return QUERIES["windows"](spark, tmp_path)

    whole = tmp_path / "whole"
    run(outputs(), whole)
    for each in (4, 5):
        (tmp_path / "in" / f"{each}.parquet").unlink()
    query = gw.write_stream(outputs(), tmp_path / "out", tmp_path / "state", keep=9)
    query.processAllAvailable()
    assert roll_back(tmp_path / "state", 2, output=tmp_path / "out") == 5
    files(tmp_path / "in", tables)
    with pytest.raises(StreamingQueryException, match="another one has committed to it"):
        query.awaitTermination(60)
    with pytest.raises(StateMismatchError, match=r"with the same --output.* to commit 5, got"):
        run(outputs(), tmp_path)
    assert roll_back(tmp_path / "state", 5, output=tmp_path / "out") == 6
    run(outputs(), tmp_path)
    assert written(spark, tmp_path) == written(spark, whole)


@pytest.mark.parametrize("name", quick(["two inputs", "timers"], nightly=["timers"]))
def test_a_copy_gives_what_its_original_gives_while_that_runs(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    tables = batches(5, 60)
    files(tmp_path / "in", tables)
    files(tmp_path / "more", [each.slice(7, 20) for each in tables])
    first, copy = tmp_path / "first", tmp_path / "copy"

    def outputs() -> gw.typing.Outputs:
        return QUERIES[name](spark, tmp_path)

    query = gw.write_stream(outputs(), first / "out", first / "state", keep=9)
    query.processAllAvailable()
    copy_checkpoint(first / "state", 3, copy / "state")
    with pytest.raises(OutputError, match="a query with another checkpoint"):
        run(outputs(), copy, first / "out")
    again = gw.write_stream(outputs(), copy / "out", copy / "state")
    again.processAllAvailable()
    assert query.isActive
    assert again.isActive
    for each in (query, again):
        each.stop()
    whole = [
        Counter({r: n for r, n in rows.items() if r[-1] > 2}) for rows in written(spark, first)
    ]
    assert written(spark, copy) == whole
    assert max(row[-1] for row in whole[0]) == 4


def test_more_commits_than_spark_has_micro_batches_are_not_kept(
    spark: SparkSession, tmp_path: Path
) -> None:
    files(tmp_path / "in", batches(1, 10))
    with pytest.raises(QueryError, match=r"at most 100, .*minBatchesToRetain.*got 101"):
        run(QUERIES["windows"](spark, tmp_path), tmp_path, keep=101)
    assert not (tmp_path / "state").exists()
