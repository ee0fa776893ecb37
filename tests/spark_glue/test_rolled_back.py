"""A checkpoint that was rolled back: a micro-batch comes again, with other rows than before."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import gpu_windows as gw
from tests.lanes import quick
from tests.spark_glue.streams import (
    WATERMARKS,
    files,
    no_time_alone,
    run_to_the_end,
    seconds,
    streamed,
)

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
    run_to_the_end(windows.outputs(n=gw.count()), folder)
    if not (folder / "out/commits").exists():
        return {}
    return {row["k"]: row["n"] for row in gw.read_output(spark, folder / "out").collect()}


def roll_back(folder: Path) -> int:
    """Forget that the last micro-batch was planned and has run; return its number."""
    state = folder / "state"
    numbers = [int(path.name) for path in (state / "commits").iterdir() if path.name.isdigit()]
    for log in ("offsets", "commits"):
        (state / log / str(max(numbers))).unlink()
        (state / log / f".{max(numbers)}.crc").unlink(missing_ok=True)
    return max(numbers)


@pytest.mark.parametrize(
    "is_owed", quick([False, True], nightly=[False]), ids=["rows at once", "time alone at first"]
)
def test_what_the_second_attempt_computes_is_what_stays(
    spark: SparkSession, tmp_path: Path, *, is_owed: bool
) -> None:
    """All 7 rows are in the window, also where the number is given to a micro-batch of no rows."""
    with no_time_alone(spark) if is_owed else nullcontext():
        assert run(spark, tmp_path, FIRST) == {}
        assert run(spark, tmp_path, FIRST, TWO) == {}
    assert roll_back(tmp_path) == (1 if is_owed else 2)
    assert run(spark, tmp_path, FIRST, TWO, FIVE) == {}
    assert run(spark, tmp_path, FIRST, TWO, FIVE, LAST) == {"a": 7, "b": 1}
