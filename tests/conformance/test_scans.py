"""Recorded batch cases have the same results where their rows are read from files."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpu_windows.vocabulary.options import Options
from tests.conformance.called import GOLDEN
from tests.conformance.scanned import ScanRunner, TableRunner
from tests.conformance.scenario import read_scenario
from tests.conformance.verdict import Status, judge

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Families that a runner of batches skips as a whole.
_NOT_BATCH = ("bounded_process_clock", "bounded_co_process_clock", "bounded_rewrites")
BOUNDED = sorted(
    path.name for path in GOLDEN.glob("bounded_*") if path.is_dir() and path.name not in _NOT_BATCH
)


def _judged(paths: list[Path], runner: ScanRunner) -> dict[Status, int]:
    """Judge cases; where one fails, an Arrow table has to give the same rows.

    The local runner takes the rows of one side after those of the other, which shows in some cases.
    """
    tables = TableRunner(Options(device="cpu"), Path())
    counts = dict.fromkeys(Status, 0)
    for path in paths:
        verdict = judge(read_scenario(path), runner)
        counts[verdict.status] += 1
        if verdict.status is Status.FAILED:
            expected = judge(read_scenario(path), tables)
            assert "co_" in path.parent.name or "join" in path.parent.name, verdict
            assert verdict.differences == expected.differences
    return counts


def _files(family: str) -> list[Path]:
    return [
        path for path in sorted((GOLDEN / family).glob("*.json")) if "not_null" not in path.stem
    ]


def _sample(most: int) -> list[Path]:
    found = []
    for family in BOUNDED:
        files = _files(family)
        found += random.Random(family).sample(files, min(most, len(files)))
    return found


def test_local_scans_agree_with_flink_on_a_sample(tmp_path: Path) -> None:
    counts = _judged(_sample(3), ScanRunner(Options(device="cpu"), tmp_path))
    assert counts[Status.PASSED] > 50


@pytest.mark.thorough
@pytest.mark.parametrize("family", BOUNDED)
def test_local_scans_agree_with_flink(family: str, tmp_path: Path) -> None:
    counts = _judged(_files(family), ScanRunner(Options(device="cpu"), tmp_path))
    assert counts[Status.PASSED] + counts[Status.FAILED] > 0


@pytest.mark.spark
@pytest.mark.thorough
def test_scans_on_spark_agree_with_flink_on_a_sample(spark: SparkSession, tmp_path: Path) -> None:
    runner = ScanRunner(Options(device="cpu"), tmp_path, spark)
    counts = _judged(_sample(2), runner)
    assert counts[Status.PASSED] > 40
    assert not counts[Status.FAILED]
    assert sum(runner.read_in_tasks) > 10
