"""A program as users write it, for ``spark-submit``; it imports nothing of the tests.

Prints JSON: where workers have the package, where its kernels are kept, seconds, results.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import gpu_windows as gw

ROWS, KEYS = 20_000, 50


def main() -> None:
    """Run a batch query twice, and a stream."""
    spark = gw.configure(SparkSession.builder).getOrCreate()
    began = time.monotonic()
    first = _batch(spark)
    seconds = [time.monotonic() - began]
    began = time.monotonic()
    again = _batch(spark)
    seconds.append(time.monotonic() - began)
    assert first == again
    streamed = _stream(spark)
    told = spark.range(0, 8, 1, 8).mapInArrow(_tell, "found string").distinct().collect()
    workers = [json.loads(row.found) for row in told]
    spark.stop()
    found = {"seconds": seconds, "batch": first, "stream": streamed, "workers": workers}
    sys.stdout.write(f"FOUND {json.dumps(found)}\n")


def _batch(spark: SparkSession) -> list[int]:
    rows = _windows(_rows(spark.range(0, ROWS, 1, 4))).result().agg({"total": "sum", "n": "count"})
    return list(rows.first() or ())


def _stream(spark: SparkSession) -> list[int]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        spark.range(0, ROWS, 1, 1).write.parquet(str(folder / "in"))
        source = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1)
        outputs = _windows(_rows(source.parquet(str(folder / "in"))))
        query = gw.write_stream(
            outputs, folder / "out", folder / "checkpoint", trigger={"availableNow": True}
        )
        query.awaitTermination()
        found = gw.read_output(spark, folder / "out").agg({"total": "sum", "n": "count"}).first()
        return list(found or ())


def _rows(ids: DataFrame) -> DataFrame:
    return ids.selectExpr("timestamp_seconds(id) AS ts", f"id % {KEYS} AS k", "id AS v")


def _windows(rows: DataFrame) -> gw.typing.Outputs:
    watermarks = gw.WatermarkStrategy.for_monotonous_timestamps()
    keyed = gw.stream(rows).event_time("ts", watermarks).key_by("k")
    sliding = keyed.window(gw.SlidingEventTimeWindows.of("10 minutes", "1 minute"))
    return sliding.with_outputs().aggregate(total=gw.sum("v"), n=gw.count())


def _tell(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Say what a worker has; kernels that it has compiled are those that lie there."""
    from gpu_windows.kernels.compile import cache_directory

    for _ in batches:
        pass
    time.sleep(0.3)  # so that every executor has one
    cache = cache_directory()
    found: dict[str, Any] = {
        "package": gw.__file__,
        "python": sys.executable,
        "user": os.geteuid(),
        "cache": str(cache),
        "kernels": len([*cache.rglob("*.nbc")]),
    }
    yield pa.record_batch({"found": [json.dumps(found, sort_keys=True)]})


if __name__ == "__main__":
    main()
