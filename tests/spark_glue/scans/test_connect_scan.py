"""Scans through Spark Connect: no sparkContext, no JVM handle."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import gpu_windows as gw
from tests.planning.queries import rows_of
from tests.spark_glue.stream_runs import WATERMARKS, batches, files, run_to_the_end

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.connect

IN_TASKS = "files are read in the tasks, by Arrow"


@pytest.fixture(scope="module")
def remote() -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    session = SparkSession.builder.remote("local[2]").getOrCreate()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.conf.set("spark.sql.shuffle.partitions", "4")
    yield session
    session.stop()


def counted(source: Any) -> gw.typing.Outputs:
    timed = gw.stream(source).with_columns(w="seq * 2").event_time("ts", WATERMARKS)
    keyed = timed.where("w > 50 AND text <> 'x'").key_by("k")
    windowed = keyed.window(gw.TumblingEventTimeWindows.of("1 minute")).options(shards=2)
    return windowed.with_outputs().aggregate(n=gw.count(), most=gw.max("w"))


def test_a_scan(remote: SparkSession, tmp_path: Path) -> None:
    for number, table in enumerate(batches(3, 200)):
        path = tmp_path / f"part={number}" / "x y%20.parquet"
        path.parent.mkdir()
        pq.write_table(table, path, row_group_size=30)
    outputs = counted(gw.scan(tmp_path, remote))
    assert IN_TASKS in outputs.explain()
    found = rows_of(outputs.result().toArrow())
    assert found == rows_of(counted(gw.scan(tmp_path)).result())
    assert found == rows_of(counted(remote.read.parquet(str(tmp_path))).result().toArrow())


def test_a_stream(remote: SparkSession, tmp_path: Path) -> None:
    files(tmp_path / "in", batches(3, 100))
    outputs = counted(gw.scan_stream(tmp_path / "in", remote, max_files_per_trigger=1))
    assert IN_TASKS in outputs.explain()
    run_to_the_end(outputs, tmp_path)
    frame = remote.readStream.schema(remote.read.parquet(str(tmp_path / "in")).schema)
    source = frame.option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    run_to_the_end(counted(source), tmp_path / "framed")
    found = [
        rows_of(gw.read_output(remote, folder / "out").toArrow())
        for folder in (tmp_path, tmp_path / "framed")
    ]
    assert found[0] == found[1]
    assert found[0]
