"""What streaming queries tell of themselves: to listeners, and to who watches."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

import gpu_windows as gw
from gpu_windows.checkpointing.commit_log import CommitLog
from gpu_windows.checkpointing.files import FOLDER
from gpu_windows.checkpointing.local_files import LocalFiles
from gpu_windows.monitoring.progress import QueryMetrics
from gpu_windows.operators.state.log import StateLog
from tests.lanes import quick
from tests.spark_glue.stream_runs import batches, files, outputs_of, streamed

errors = pytest.importorskip("pyspark.errors")

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from gpu_windows.spark_glue.streams.listener import MetricsListener

ONCE = {"availableNow": True}
TABLES = batches(3)


@pytest.fixture
def listener(spark: SparkSession) -> Iterator[MetricsListener]:
    found = gw.MetricsListener()
    spark.streams.addListener(found)
    yield found
    spark.streams.removeListener(found)


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait for what Spark tells a moment later."""
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def wait_for_end(listener: MetricsListener, query: StreamingQuery) -> QueryMetrics:
    key = str(query.id)
    wait_until(lambda: key in listener.queries and not listener.queries[key].is_active)
    return listener.of(query)


def bytes_in(checkpoint: str) -> int:
    """Return the bytes of live runs in the state files of a checkpoint."""
    log = CommitLog(LocalFiles(f"{checkpoint}/{FOLDER}"))
    commit = log.last()
    assert commit is not None
    newest = [shard.newest for stage in commit.stages for shard in stage.shards]
    return sum(StateLog(log.files, name).live_size for name in newest)


def watch(query: StreamingQuery) -> tuple[QueryMetrics, str]:
    """Return the metrics of a query, once it has ended, and what is printed meanwhile."""
    console = Console(file=io.StringIO(), record=True)
    return gw.watch(query, console=console), console.export_text()


@pytest.mark.parametrize("name", quick(["sliding", "lateness"], nightly=["sliding"]))
def test_what_is_told_is_what_happened(
    spark: SparkSession, tmp_path: Path, listener: MetricsListener, name: str
) -> None:
    files(tmp_path / "in", TABLES)
    outputs = outputs_of(name, streamed(spark, tmp_path / "in"))
    out, checkpoint = str(tmp_path / "out"), str(tmp_path / "state")
    query = gw.write_stream(outputs, out, checkpoint, trigger=ONCE, name=name)
    watched, text = watch(query)
    assert wait_for_end(listener, query) == watched
    assert text.count("batch ") == watched.batches == 3
    counters, last = watched.counters, watched.last
    rejected = sum(table["ts"].null_count for table in TABLES)
    assert (counters.rows, counters.null_timestamp) == (1_200, rejected)
    assert counters.late + rejected == gw.read_output(spark, out, "late").count() > rejected
    assert counters.fired == gw.read_output(spark, out).count() > 100
    assert counters.cpu_batches > counters.cuda_batches == 0
    assert last is not None
    assert (last.number, last.counters.rows, last.shards, last.device) == (2, 400, 5, "cpu")
    latest = max(ts for table in TABLES for ts in table["ts"].drop_null().to_pylist())
    assert last.watermark is not None
    assert timedelta(0) <= latest - timedelta(seconds=5) - last.watermark < timedelta(seconds=0.001)
    assert watched.state_bytes == bytes_in(checkpoint)
    assert 0 < watched.state_rows == last.state_rows
    assert min(watched.kernel_ms, watched.state_ms) > 0


@pytest.mark.thorough
def test_a_micro_batch_is_counted_once(
    spark: SparkSession, tmp_path: Path, listener: MetricsListener
) -> None:
    """Though the sink reads it twice, and fails on it: then it is given to it again."""
    files(tmp_path / "in", TABLES)
    outputs = outputs_of("sliding", streamed(spark, tmp_path / "in"))
    state = str(tmp_path / "state")
    fired: dict[int, int] = {}

    def sink(results: DataFrame, late: DataFrame, number: int) -> None:
        assert late.count() <= 400
        if number == 1 and number not in fired:
            fired[number] = results.count()
            raise ValueError("no such table")
        fired[number] = len(results.collect())

    query = gw.write_stream(outputs, sink, state, trigger=ONCE)
    with pytest.raises(errors.StreamingQueryException, match="no such table"):
        watch(query)
    before = wait_for_end(listener, query)
    assert before.batches == 1
    assert "no such table" in str(before.error)
    again = gw.write_stream(outputs, sink, state, trigger=ONCE)
    watched, _ = watch(again)
    assert (watched.batches, watched.counters.rows) == (2, 800)  # one of them only delivered
    wait_until(lambda: listener.of(again).batches == 3)
    after = wait_for_end(listener, again)
    assert (after.counters.rows, after.counters.fired) == (1_200, sum(fired.values()))
    assert after.state_bytes == bytes_in(state)
    assert after.error is None


@pytest.mark.thorough
def test_what_a_query_did_before_it_was_started_again_is_not_told_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Its commits have it, of another process too."""
    out, state = str(tmp_path / "out"), str(tmp_path / "state")
    files(tmp_path / "in", TABLES[:2])
    outputs = outputs_of("sliding", streamed(spark, tmp_path / "in"))
    gw.write_stream(outputs, out, state, trigger=ONCE).awaitTermination()
    files(tmp_path / "in", TABLES)
    listener = gw.MetricsListener()
    spark.streams.addListener(listener)
    try:
        query = gw.write_stream(outputs, out, state, trigger=ONCE)
        watched, text = watch(query)
        assert wait_for_end(listener, query) == watched
    finally:
        spark.streams.removeListener(listener)
    assert watched.last is not None
    assert (watched.batches, watched.last.number, watched.counters.rows) == (1, 2, 400)
    assert "batch 2:" in text
    assert "batch 1:" not in text
