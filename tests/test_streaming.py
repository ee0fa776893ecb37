"""A streaming query gives what the local operator gives, batch by batch."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gpu_windows as gw
from gpu_windows import errors
from gpu_windows.operators.base import Emission
from gpu_windows.operators.build import build_operator
from gpu_windows.query import REASON
from gpu_windows.spark_glue.batch import BOUNDS
from gpu_windows.spark_glue.settings import PROVIDER, ROCKSDB
from tests.queries import rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SECOND = 1_000_000
BEGIN = 1_700_000_000 * SECOND
AGGREGATES = {
    "n": gw.count(),
    "total": gw.sum("v"),
    "top": gw.max("v"),
    "spread": gw.stddev("v"),
    "first": gw.first("text"),
}
WATERMARKS = gw.WatermarkStrategy.for_bounded_out_of_orderness("5 seconds")


def batches(count: int = 4, rows: int = 400) -> list[pa.Table]:
    """Rows of a minute each, some of them late, some without a time."""
    rng = np.random.default_rng(11)
    found = []
    for number in range(count):
        at = BEGIN + number * 60 * SECOND + rng.integers(0, 60 * SECOND, rows)
        at[rng.random(rows) < 0.05] -= 90 * SECOND
        ticks = pa.array(at, mask=rng.random(rows) < 0.02)
        found.append(
            pa.table(
                {
                    "ts": ticks.cast(pa.timestamp("us", "UTC")),
                    "k": rng.integers(0, 20, rows),
                    "v": rng.integers(0, 100, rows) / 4,
                    "text": rng.choice(["x", "y", "z"], rows),
                    "seq": np.arange(number * rows, (number + 1) * rows),
                }
            )
        )
    return found


def windowed(source: Any, assigner: gw.WindowAssigner) -> gw.WindowedStream:
    timed = gw.stream(source).event_time("ts", WATERMARKS)
    return timed.key_by("k").window(assigner).order_by("seq").options(device="cpu", shards=5)


def streamed(spark: SparkSession, folder: Path) -> DataFrame:
    schema = spark.createDataFrame(batches(1, 1)[0]).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def files(folder: Path, tables: list[pa.Table]) -> None:
    """Write a file a batch; Spark takes them in order of their time."""
    folder.mkdir()
    for number, table in enumerate(tables):
        pq.write_table(table, folder / f"{number}.parquet")
        os.utime(folder / f"{number}.parquet", (BEGIN // SECOND + number,) * 2)


def expected(made: gw.Outputs, tables: list[pa.Table]) -> tuple[pa.Table, pa.Table]:
    """What an operator gives that sees Spark's watermark before each batch, and at last."""
    operator = build_operator(made.plan)
    emissions: list[Emission] = []
    latest = 0
    for table in [*tables, None]:
        if latest:
            watermark = (latest // 1_000 - 5_000) * 1_000 - 1
            emissions += operator.advance_watermark(watermark)
        if table is None:
            continue
        at = table.schema.get_field_index("ts")
        ticks = table["ts"].cast(pa.int64())
        batch = table.set_column(at, "ts", ticks).select(made.plan.input_columns)
        emissions += operator.process(batch)
        latest = max(latest, pa.compute.max(ticks).as_py())
    results = pa.concat_tables([e.results for e in emissions if len(e.results)])
    return results, pa.concat_tables([e.late for e in emissions if len(e.late)])


ASSIGNERS = {
    "tumbling": gw.TumblingEventTimeWindows.of("20 seconds"),
    "sliding": gw.SlidingEventTimeWindows.of("1 minute", "15 seconds"),
    "cumulative": gw.CumulativeEventTimeWindows.of("1 minute", "20 seconds"),
    "sessions": gw.EventTimeSessionWindows.with_gap("4 seconds"),
    "lateness": gw.TumblingEventTimeWindows.of("1 minute"),
    "evictor": gw.SlidingEventTimeWindows.of("1 minute", "30 seconds"),
    "continuous": gw.TumblingEventTimeWindows.of("1 minute"),
    "count window": gw.GlobalWindows(),
}


def outputs_of(name: str, source: Any) -> gw.Outputs:
    """Return the outputs of a kind of query."""
    made = windowed(source, ASSIGNERS[name])
    if name == "lateness":
        made = made.allowed_lateness("1 minute").with_firing_columns()
    if name == "evictor":
        made = made.evictor(gw.CountEvictor.of(3))
    if name == "continuous":
        made = made.trigger(gw.ContinuousEventTimeTrigger.of("15 seconds"))
    if name == "count window":
        made = made.trigger(gw.CountTrigger.of(5)).evictor(gw.CountEvictor.of(8))
    return made.outputs(**AGGREGATES)


@pytest.mark.parametrize("name", ASSIGNERS)
def test_queries(spark: SparkSession, tmp_path: Path, name: str) -> None:
    tables = batches()
    files(tmp_path / "in", tables)
    outputs = outputs_of(name, streamed(spark, tmp_path / "in"))
    query = gw.write_stream(
        outputs, str(tmp_path / "out"), str(tmp_path / "state"), trigger={"availableNow": True}
    )
    query.awaitTermination()
    results, late = expected(outputs, tables)
    got = spark.read.parquet(str(tmp_path / "out" / "result")).drop("batch").toArrow()
    as_ticks = [f.with_type(pa.int64()) if f.name in BOUNDS else f for f in got.schema]
    assert rows_of(got.cast(pa.schema(as_ticks))) == rows_of(results)
    assert len(results) > 100
    back = spark.read.parquet(str(tmp_path / "out" / "late")).drop("batch").toArrow()
    assert sorted(back[REASON].to_pylist()) == sorted(late[REASON].to_pylist())
    assert sorted(back["seq"].to_pylist()) == sorted(late["seq"].to_pylist())
    wanted = {"null_timestamp"} if name == "count window" else {"late", "null_timestamp"}
    assert set(late[REASON].to_pylist()) == wanted


def test_a_checkpoint_belongs_to_its_query(spark: SparkSession, tmp_path: Path) -> None:
    files(tmp_path / "in", batches(1, 50))
    source, state = streamed(spark, tmp_path / "in"), str(tmp_path / "state")

    def start(assigner: gw.WindowAssigner, shards: int, **aggregates: gw.Aggregate) -> None:
        outputs = windowed(source, assigner).options(shards=shards).outputs(**aggregates)
        folder = str(tmp_path / "out")
        gw.write_stream(outputs, folder, state, trigger={"availableNow": True}).awaitTermination()

    start(ASSIGNERS["tumbling"], 2, n=gw.count())
    start(ASSIGNERS["tumbling"], 2, n=gw.count())
    changes: dict[str, tuple[Any, ...]] = {
        "shards was 2, is 3": (ASSIGNERS["tumbling"], 3, gw.count()),
        "function was n = count.*, is n = sum": (ASSIGNERS["tumbling"], 2, gw.sum("v")),
        "window was tumbling.*, is sliding": (ASSIGNERS["sliding"], 2, gw.count()),
    }
    for text, (assigner, shards, aggregate) in changes.items():
        with pytest.raises(errors.StateMismatchError, match=text):
            start(assigner, shards, n=aggregate)


def test_what_streams_refuse(spark: SparkSession, tmp_path: Path) -> None:
    source = streamed(spark, tmp_path)
    tumbling = windowed(source, ASSIGNERS["tumbling"])
    with pytest.raises(errors.UnsupportedQueryError, match="partials='spark'"):
        tumbling.options(partials="spark").outputs(n=gw.count())
    other = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
    spark.conf.set(PROVIDER, other)
    try:
        with pytest.raises(errors.UnsupportedQueryError, match=f"configure, got {other}"):
            tumbling.outputs(n=gw.count())
    finally:
        spark.conf.set(PROVIDER, ROCKSDB)
    clock = gw.TumblingProcessingTimeWindows.of("5 seconds")
    with pytest.raises(errors.UnsupportedQueryError, match="event time only as yet"):
        windowed(source, clock).outputs(n=gw.count())
    with pytest.raises(errors.UnsupportedQueryError, match="not user code as yet"):
        windowed(source, ASSIGNERS["tumbling"]).options(engine="reference").outputs(n=gw.count())
