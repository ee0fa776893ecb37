"""What streaming queries tell of themselves: to listeners, to who watches, in `metrics`."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

import gpu_windows as gw
from gpu_windows.monitoring.progress import QueryMetrics
from gpu_windows.operators.counters import Counters
from gpu_windows.spark_glue.processor import STATE
from tests.lanes import quick
from tests.spark_glue.streams import batches, files, outputs_of, streamed

errors = pytest.importorskip("pyspark.errors")

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from gpu_windows.spark_glue.listener import MetricsListener

ONCE = {"availableNow": True}
TABLES = batches(3)


@pytest.fixture
def listener(spark: SparkSession) -> Iterator[MetricsListener]:
    found = gw.MetricsListener()
    spark.streams.addListener(found)
    yield found
    spark.streams.removeListener(found)


def until(told: Callable[[], bool]) -> None:
    """Wait for what Spark tells a moment later."""
    end = time.monotonic() + 60
    while not told():
        assert time.monotonic() < end
        time.sleep(0.05)


def ended(listener: MetricsListener, query: StreamingQuery) -> QueryMetrics:
    key = str(query.id)
    until(lambda: key in listener.queries and not listener.queries[key].is_active)
    return listener.of(query)


def bytes_in(spark: SparkSession, checkpoint: str) -> int:
    """Return the bytes of state in a checkpoint, as Spark itself reads it."""
    state = spark.read.format("statestore").option("stateVarName", STATE).load(checkpoint)
    held = state.where("user_map_key.kind <> 'measures'")
    return int(held.selectExpr("sum(length(unbase64(user_map_value.__blob)))").collect()[0][0])


@pytest.mark.parametrize("name", quick(["sliding", "lateness"], nightly=["sliding"]))
def test_what_is_told_is_what_happened(
    spark: SparkSession, tmp_path: Path, listener: MetricsListener, name: str
) -> None:
    files(tmp_path / "in", TABLES)
    outputs = outputs_of(name, streamed(spark, tmp_path / "in"))
    out, checkpoint = str(tmp_path / "out"), str(tmp_path / "state")
    query = gw.write_stream(outputs, out, checkpoint, trigger=ONCE, name=name)
    console = Console(file=io.StringIO(), record=True)
    watched = gw.watch(query, console=console)
    assert ended(listener, query) == watched
    assert console.export_text().count("batch ") == watched.batches == 4
    counters, last = watched.counters, watched.last
    rejected = sum(table["ts"].null_count for table in TABLES)
    assert (counters.rows, counters.null_timestamp) == (1_200, rejected)
    assert counters.late + rejected == gw.read_output(spark, out, "late").count() > rejected
    assert counters.fired == gw.read_output(spark, out).count() > 100
    assert counters.cpu_batches > counters.cuda_batches == 0
    assert last is not None
    assert (last.number, last.counters.rows, last.shards, last.device) == (3, 0, 5, "cpu")
    latest = max(ts for table in TABLES for ts in table["ts"].drop_null().to_pylist())
    assert last.watermark is not None
    assert timedelta(0) <= latest - timedelta(seconds=5) - last.watermark < timedelta(seconds=0.001)
    assert watched.state_bytes == bytes_in(spark, checkpoint)
    assert 0 < watched.state_rows == last.state_rows
    assert min(watched.kernel_ms, watched.state_ms) > 0


@pytest.mark.thorough
def test_a_micro_batch_is_counted_once(
    spark: SparkSession, tmp_path: Path, listener: MetricsListener
) -> None:
    """Though the sink reads it twice, and fails on it: then it is run again."""
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
        gw.watch(query, console=Console(file=io.StringIO()))
    before = ended(listener, query)
    assert before.batches == 1
    assert "no such table" in str(before.error)
    again = gw.write_stream(outputs, sink, state, trigger=ONCE)
    again.awaitTermination()
    until(lambda: listener.of(again).batches == 4)
    after = ended(listener, again)
    assert (after.counters.rows, after.counters.fired) == (1_200, sum(fired.values()))
    assert after.state_bytes == bytes_in(spark, state)
    assert after.error is None

    unobserved = outputs.metrics().writeStream.format("memory").queryName("of_shards")
    settings = {"checkpointLocation": str(tmp_path / "other")}
    unobserved.options(**settings).trigger(availableNow=True).start().awaitTermination()
    of_shards = spark.table("of_shards").toPandas()
    assert len(of_shards) == 5 * 4
    assert set(of_shards["device"]) == {"cpu"}
    names = [*Counters.names(), "state_bytes_change", "state_rows_change"]
    sums: dict[str, Any] = {name: int(of_shards[name].sum()) for name in names}
    assert Counters(**{name: sums[name] for name in Counters.names()}) == after.counters
    assert sums["state_bytes_change"] == after.state_bytes
    assert sums["state_rows_change"] == after.state_rows
