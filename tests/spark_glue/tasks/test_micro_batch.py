"""The task of shards: what it refuses of a shuffle."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from gpu_windows.checkpointing.commit_log import CommitLog
from gpu_windows.checkpointing.local_files import LocalFiles
from gpu_windows.checkpointing.state_commit import StateCommit
from gpu_windows.errors import StateCorruptedError
from gpu_windows.planning.planner import plan
from gpu_windows.spark_glue.contract.progress import read_combined_watermark
from gpu_windows.spark_glue.tasks.fragments import send_whole
from gpu_windows.spark_glue.tasks.micro_batch import (
    CONTROL,
    MIN_INLINE_BYTES,
    RunMicroBatch,
    inline_bytes,
)
from gpu_windows.vocabulary.watermarks import WatermarkStrategy
from tests.spark_glue.shards import windows_of_ten


def make_task(folder: Path, shards: int) -> RunMicroBatch:
    log = CommitLog(LocalFiles(str(folder)))
    log.add(StateCommit(sequence=0, lineage="a", facts=""))
    made = windows_of_ten(WatermarkStrategy(0), shards)
    return RunMicroBatch(
        plan=plan(made, bounded=False, spark=True),
        log=log,
        sequence=1,
        stage=0,
        first_kind=0,
        ids=tuple(range(shards)),
        newest=(None,) * shards,
        before=read_combined_watermark(made, {}),
        previous_watermark=None,
        stage_watermarks={},
        now_ms=0,
    )


def controls(*shards: int) -> list[pa.RecordBatch]:
    return [send_whole(shards, CONTROL)]


def test_every_shard_runs_once(tmp_path: Path) -> None:
    reports = [*make_task(tmp_path, 2)(controls(1, 1, 0))]
    assert [batch.column(0).to_pylist()[-1] for batch in reports] == [1, 0]


def test_a_shard_that_comes_again_is_refused(tmp_path: Path) -> None:
    """Its second half would begin from the state before the first one, and one would be lost."""
    with pytest.raises(StateCorruptedError, match="consecutively, got shard 1"):
        [*make_task(tmp_path, 2)(controls(1, 0, 1))]


def test_few_tasks_return_their_results_and_many_not_more_than_a_driver_takes() -> None:
    sizes = [inline_bytes(task) for task in range(1_000_000)]
    assert {*sizes[:1_024]} == {MIN_INLINE_BYTES}
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[10_000] < 200
    assert 16 << 20 < sum(sizes) < 32 << 20
