"""What is written by a query that is killed and started again is what it would have written."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import gpu_windows as gw
from tests.chaos import chain
from tests.chaos.driver import BROADCAST, GAPS, JOIN, PROCESS
from tests.chaos.harness import (
    Victim,
    differences,
    fresh,
    is_planned_alike,
    kinds_of,
    prepare,
    rows_written,
    run_with_death,
    undisturbed,
)
from tests.spark_glue.stream_runs import outputs_of, streamed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("query", "victim"),
    [
        ("sliding", "driver"),
        (JOIN, "worker"),
        (PROCESS, "driver"),
        (BROADCAST, "worker"),
        ("sliding", "worker"),
        (JOIN, "driver"),
        (GAPS, "driver"),
        (GAPS, "worker"),
    ],
)
def test_a_killed_query_writes_the_same(tmp_path: Path, query: str, victim: Victim) -> None:
    prepare(tmp_path / "whole", 4, 300)
    seconds = undisturbed(query, tmp_path / "whole")
    assert all(rows_written(tmp_path / "whole", kind) for kind in kinds_of(query))
    rng = random.Random(3)
    for _ in range(3):  # Spark may take two files at once after a death
        folder = fresh(tmp_path / "killed", tmp_path / "whole")
        death = run_with_death(query, folder, victim, 0.9 * seconds, rng)
        assert death is not None
        if is_planned_alike(folder, tmp_path / "whole"):
            break
    assert differences(folder, tmp_path / "whole", query) == []


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(600)
def test_an_executor_dies_while_a_sink_reads(spark: SparkSession, tmp_path: Path) -> None:
    """Nothing is computed again, and the next micro-batch needs no executor that has died."""
    prepare(tmp_path / "run", 4, 300)
    command = [sys.executable, "-m", "tests.chaos.executors", str(tmp_path / "run")]
    subprocess.run(command, check=True, timeout=500)
    source = streamed(spark, tmp_path / "run" / "in")
    wanted: dict[int, list[str]] = {}

    def keep(results: DataFrame, _: DataFrame, number: int) -> None:
        wanted[number] = sorted(map(repr, results.toArrow().to_pylist()))

    now = {"availableNow": True}
    query = gw.write_stream(outputs_of("sliding", source), keep, tmp_path / "state", trigger=now)
    query.awaitTermination()
    assert sum(map(len, wanted.values())) > 100
    for number, rows in wanted.items():
        assert json.loads((tmp_path / "run" / f"{number}.json").read_text()) == rows


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(900)
def test_a_chain_of_killed_queries_writes_the_same(tmp_path: Path) -> None:
    prepare(tmp_path / "whole", 12, 200)
    chain.run_chain(tmp_path / "whole", 0, random.Random(5))
    killed = fresh(tmp_path / "killed", tmp_path / "whole")
    assert sum(chain.run_chain(killed, 2, random.Random(5)).values()) > 0
    assert chain.differences(tmp_path / "whole", killed) == []
