"""A checkpoint that was rolled back: by a copy of the whole, or by what had given nothing."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import gpu_windows as gw
from tests.spark_glue.stream_runs import WATERMARKS, files, run_to_the_end, seconds, streamed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The rows of four files; between the second and the third the checkpoint is rolled back.
FIRST = [("b", 0, 1)]
TWO, FIVE = [("a", 0, 1), ("a", 0, 2)], [("a", 0, each) for each in range(3, 8)]
LAST = [("z", 100, 0)]


def run(spark: SparkSession, folder: Path, *tables: list[tuple[str, int, int]]) -> dict[str, int]:
    """Run to the end of these files, all that are new in one micro-batch; return the counts."""
    files(folder / "in", [seconds(rows) for rows in tables])
    rows = streamed(spark, folder / "in", seconds(FIRST), per_batch=100)
    keyed = gw.stream(rows).event_time("ts", WATERMARKS).key_by("k")
    windows = keyed.window(gw.TumblingEventTimeWindows.of("10 seconds")).options(shards=2)
    run_to_the_end(windows.with_outputs().aggregate(n=gw.count()), folder)
    if not (folder / "out/commits").exists():
        return {}
    return {row["k"]: row["n"] for row in gw.read_output(spark, folder / "out").collect()}


def roll_back_spark(folder: Path) -> None:
    """Have Spark forget that the last micro-batch was planned and has run."""
    for log in (folder / "state" / "offsets", folder / "state" / "commits"):
        last = max(int(path.name) for path in log.iterdir() if path.name.isdigit())
        (log / str(last)).unlink()
        (log / f".{last}.crc").unlink(missing_ok=True)


@pytest.mark.thorough
def test_spark_may_forget_a_micro_batch_that_gave_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    """It comes with five rows more: all 7 are in the window, those of the first attempt once."""
    assert run(spark, tmp_path, FIRST) == {}
    assert run(spark, tmp_path, FIRST, TWO) == {}
    roll_back_spark(tmp_path)
    assert run(spark, tmp_path, FIRST, TWO, FIVE) == {}
    assert run(spark, tmp_path, FIRST, TWO, FIVE, LAST) == {"a": 7, "b": 1}


@pytest.mark.thorough
def test_where_spark_has_forgotten_a_micro_batch_with_results_the_query_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    """It would come with other rows than those whose results were given to the sink."""
    run(spark, tmp_path, FIRST)
    assert run(spark, tmp_path, FIRST, LAST) == {"b": 1}
    roll_back_spark(tmp_path)
    rule = "continues with micro-batch 1, and the last commit is of micro-batch 1: parts of the"
    for _ in range(2):
        with pytest.raises(Exception, match=rule):
            run(spark, tmp_path, FIRST, LAST, FIVE)


@pytest.mark.thorough
def test_a_copy_of_the_whole_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    """All 7 rows are in the window, those of the first attempt once."""
    assert run(spark, tmp_path, FIRST) == {}
    shutil.copytree(tmp_path / "state", tmp_path / "copy")
    assert run(spark, tmp_path, FIRST, TWO) == {}
    shutil.rmtree(tmp_path / "state")
    (tmp_path / "copy").rename(tmp_path / "state")
    assert run(spark, tmp_path, FIRST, TWO, FIVE) == {}
    assert run(spark, tmp_path, FIRST, TWO, FIVE, LAST) == {"a": 7, "b": 1}
