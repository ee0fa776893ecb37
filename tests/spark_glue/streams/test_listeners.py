"""Events of Spark may be lost: a micro-batch does not wait for any."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import Observation

import gpu_windows as gw
from gpu_windows.commits.path_log import NOTHING, PathLog
from tests.spark_glue.stream_runs import batches, files, outputs_of, run_to_the_end, streamed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def lost(_: Observation) -> dict[str, int]:
    """Spark 4.0 would wait for ever."""
    raise TimeoutError("the event was dropped")


@pytest.mark.thorough
def test_a_micro_batch_is_counted_without_an_event(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows it took in, and those that it wrote of each output."""
    monkeypatch.setattr(Observation, "get", property(lost))
    tables = batches(3, 100)
    files(tmp_path / "in", tables)
    run_to_the_end(outputs_of("tumbling", streamed(spark, tmp_path / "in")), tmp_path)
    commits = list(PathLog((tmp_path / "out").as_uri()).between(NOTHING))
    assert [commit.rows for commit in commits] == [100, 100, 100]
    for output in ("result", "late"):
        rows = sum(commit.outputs[output].rows for commit in commits if output in commit.outputs)
        assert rows == gw.read_output(spark, tmp_path / "out", output).count() > 0
