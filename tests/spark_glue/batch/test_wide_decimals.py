"""Wide decimals and text on Spark: what its own aggregates give, in batch and on streams."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import gpu_windows as gw

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.thorough]

STRATEGY = gw.WatermarkStrategy.for_monotonous_timestamps()
COLUMNS = (
    "timestamp_seconds(id) AS ts",
    "id % 7 AS k",
    "CAST((id * id * 7919 - 9000000000) * 123456789123BD / 3 AS DECIMAL(34, 4)) AS v",
    "CASE WHEN id % 11 = 0 THEN NULL ELSE concat(chr(97 + id % 26), id % 13) END AS name",
)
AGGREGATES = {
    "total": gw.sum("v"),
    "mean": gw.mean("v"),
    "low": gw.min("v"),
    "high": gw.max("v"),
    "first_name": gw.min("name"),
    "last_name": gw.max("name"),
    "latest": gw.arg_max("name", by="v"),
    "middle": gw.median("v"),
}
SPARKS = (
    "sum(v) total",
    "avg(v) mean",
    "min(v) low",
    "max(v) high",
    "min(name) first_name",
    "max(name) last_name",
    "max_by(name, v) latest",
    "percentile(v, 0.5) middle",
)


def rows_of(spark: SparkSession) -> DataFrame:
    return spark.range(0, 2_000, 1, 3).selectExpr(*COLUMNS)


def outputs_of(rows: Any, partials: Any = "auto") -> Any:
    keyed = gw.stream(rows).event_time("ts", STRATEGY).key_by("k")
    windows = keyed.window(gw.TumblingEventTimeWindows.of("5 minutes"))
    return windows.options(partials=partials, shards=3).with_outputs().aggregate(**AGGREGATES)


def wanted(spark: SparkSession) -> list[Any]:
    from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

    windows = rows_of(spark).groupBy("k", F.window("ts", "5 minutes"))
    found = windows.agg(*map(F.expr, SPARKS)).select("k", "window.*", *AGGREGATES)
    return sorted(map(tuple, found.collect()))


def test_batch_results_are_sparks(spark: SparkSession) -> None:
    found = outputs_of(rows_of(spark)).result()
    assert dict(found.dtypes)["total"] == "decimal(38,4)"
    assert dict(found.dtypes)["mean"] == "decimal(38,8)"
    assert sorted(map(tuple, found.collect())) == wanted(spark)


def test_a_stream_gives_sparks_batch_results(spark: SparkSession, tmp_path: Path) -> None:
    rows = rows_of(spark)
    rows.coalesce(1).sortWithinPartitions("ts").write.parquet(str(tmp_path / "in"))
    source = spark.readStream.schema(rows.schema).option("maxFilesPerTrigger", 1)
    outputs = outputs_of(source.parquet(str(tmp_path / "in")))
    places = tmp_path / "out", tmp_path / "checkpoint"
    gw.write_stream(outputs, *places, trigger={"availableNow": True}).awaitTermination()
    found = gw.read_output(spark, tmp_path / "out")
    ours = {tuple(row)[:3]: tuple(row) for row in found.collect()}
    theirs = {row[:3]: row for row in wanted(spark)}
    assert len(ours) == 7 * 6  # the last windows wait for their end
    assert ours == {key: theirs[key] for key in ours}


def test_a_scan_reads_them(spark: SparkSession, tmp_path: Path) -> None:
    rows_of(spark).write.parquet(str(tmp_path / "in"))
    assert any(pq.read_table(path).num_rows for path in (tmp_path / "in").glob("*.parquet"))
    found = outputs_of(gw.scan(tmp_path / "in", spark)).result()
    assert sorted(map(tuple, found.collect())) == wanted(spark)
