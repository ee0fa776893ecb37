"""A cluster runs a batch query and a stream, an executor dies, and the rows are the local ones."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from gpu_windows.planning.planner import plan
from tests.chaos.driver import LATE, late_rows
from tests.chaos.harness import prepare, rows_written
from tests.cluster.applications import RESTLESS, SHARED, settings
from tests.cluster.batch import BatchRun, wanted
from tests.cluster.deaths import Outcome, disturb
from tests.cluster.standalone import Cluster
from tests.planning.queries import rounded, rows_of
from tests.spark_glue.stream_runs import batches, expected_of

BATCHES, ROWS = 4, 300


@pytest.mark.thorough
@pytest.mark.spark
@pytest.mark.timeout(600)
def test_an_executor_dies_and_no_row_is_lost(tmp_path: Path) -> None:
    prepare(tmp_path / "run", BATCHES, ROWS)
    with Cluster(tmp_path / "cluster", workers=2) as cluster:
        made = settings(cluster, tmp_path / "events", {**RESTLESS, **SHARED})
        run, outcome = BatchRun(tmp_path / "run", made, queries=LATE, stream=LATE), Outcome()
        disturb(run, cluster, ["executor"], random.Random(1), outcome)
    assert outcome.deaths == {"executor": 1}
    (result,) = run.results()
    assert rows_of(pq.read_table(result)) == wanted(tmp_path / "run", LATE)
    tables = batches(BATCHES, ROWS)
    planned = plan(late_rows(tables[0]).plan.query, bounded=False, spark=True)
    results, late = expected_of(planned, tables)
    assert _ticks(rows_written(tmp_path / "run", "result")) == rows_of(results)
    assert len(rows_written(tmp_path / "run", "late")) == len(late) > 0


def _ticks(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return rows without the numbers of their micro-batches, times in microseconds."""
    return rounded(
        tuple(_tick(value) if isinstance(value, datetime) else value for value in row)
        for _, *row in rows
    )


def _tick(time: datetime) -> int:
    """Return microseconds since 1970 of a time that has lost its zone, which was UTC."""
    return (time.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(
        microseconds=1
    )
