"""Rows that happen when they arrive, where the clock of the machine was set back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import gpu_windows as gw
from tests.spark_glue.stream_runs import files, run_to_the_end, seconds, streamed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HOUR_MS = 3_600_000
ROWS = [("a", 0, 1), ("b", 0, 2)]


def set_clock_back(folder: Path) -> None:
    """Have the last micro-batch be planned an hour later than it was, which is now to come."""
    path = max((folder / "state" / "gpu_windows" / "commits").iterdir())
    commit = json.loads(path.read_text())
    path.write_text(json.dumps({**commit, "planned_ms": commit["planned_ms"] + _HOUR_MS}))


@pytest.mark.thorough
def test_rows_are_not_late_where_the_clock_was_set_back(
    spark: SparkSession, tmp_path: Path
) -> None:
    for count in range(1, 4):
        files(tmp_path / "in", [seconds(ROWS)] * count)
        rows = gw.stream(streamed(spark, tmp_path / "in", seconds(ROWS))).ingestion_time()
        windows = rows.key_by("k").window(gw.TumblingEventTimeWindows.of("1 second"))
        run_to_the_end(windows.options(shards=2).with_outputs().aggregate(n=gw.count()), tmp_path)
        set_clock_back(tmp_path)
    assert gw.read_output(spark, tmp_path / "out", "late").count() == 0
    found = gw.read_output(spark, tmp_path / "out").groupBy("k").sum("n").collect()
    assert {row["k"]: row["sum(n)"] for row in found} == {"a": 2, "b": 2}
