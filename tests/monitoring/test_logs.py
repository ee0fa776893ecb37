"""Log records say of which query, micro-batch, target and shard they are."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.monitoring.logs import LogFields, current_fields, log_fields
from gpu_windows.spark_glue.tasks.worker_step import WorkerTask
from tests.sinks.dying import NOW
from tests.spark_glue.stream_runs import batches, files, outputs_of, streamed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOGGER = logging.getLogger("gpu_windows.of_a_test")
#: A worker: the fields of a task, and a level that is none.
WORKER = """
import logging, sys
import gpu_windows.monitoring.logs as logs

logs.log_to_stderr()
logs.log_to_stderr()
with logs.log_fields(query="totals", micro_batch=7, target="", shard=3):
    logging.getLogger("gpu_windows.operators").warning("%d rows", 5)
logging.getLogger("gpu_windows.operators").info("not at this level")
logging.getLogger("another").info("of another package")
"""


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """What is logged, with fields; its records are read when they are asked for."""
    fields = LogFields()
    caplog.handler.addFilter(fields)
    with caplog.at_level(logging.INFO, "gpu_windows"):
        yield caplog
    caplog.handler.removeFilter(fields)


def fields_of(record: logging.LogRecord) -> tuple[object, ...]:
    return tuple(vars(record)[name] for name in ("query", "target", "micro_batch", "shard"))


def test_records_have_the_fields_of_their_block(logged: pytest.LogCaptureFixture) -> None:
    with log_fields(query="totals", micro_batch=3):
        with log_fields(shard=0), ThreadPoolExecutor() as pool:
            LOGGER.warning("in a shard")
            pool.submit(LOGGER.warning, "in another thread").result()
        LOGGER.warning("in none", extra={"target": "of the call"})
    LOGGER.warning("outside")
    assert [*map(fields_of, logged.records)] == [
        ("totals", "", 3, 0), ("", "", "", ""), ("totals", "of the call", 3, ""), ("", "", "", ""),
    ]  # fmt: skip
    with pytest.raises(ValueError, match="fails"), log_fields(shard=1):
        raise ValueError("fails")
    assert current_fields() == {}


def test_tasks_log_with_the_fields_of_the_driver(logged: pytest.LogCaptureFixture) -> None:
    def task(batches_: object) -> Iterator[pa.RecordBatch]:
        del batches_
        for number in range(2):
            LOGGER.warning("%d", number)
            yield pa.record_batch({"a": [number]})

    assert len([*WorkerTask(task, {"query": "totals"})(iter([]))]) == 2
    assert [fields_of(each)[0] for each in logged.records] == ["totals", "totals"]
    assert current_fields() == {}


def test_workers_log_to_their_standard_error() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WORKER], capture_output=True, text=True, check=True, timeout=60
    )
    (line,) = done.stderr.splitlines()
    wanted = "WARNING gpu_windows.operators query=totals target= micro_batch=7 shard=3: 5 rows"
    assert line.endswith(wanted)


@pytest.mark.thorough
def test_the_driver_logs_micro_batches(
    spark: SparkSession, tmp_path: Path, logged: pytest.LogCaptureFixture
) -> None:
    files(tmp_path / "in", batches(2, 50))
    outputs = outputs_of("sliding", streamed(spark, tmp_path / "in"))
    for name in ("totals", "totals"):
        places = tmp_path / "out", tmp_path / "state"
        gw.write_stream(outputs, *places, name=name, trigger=NOW).awaitTermination()
    own = [
        each for each in logged.records if each.name.startswith("gpu_windows.spark_glue.streams")
    ]
    starts = [each.getMessage() for each in own if "starts" in each.getMessage()]
    assert [each.rpartition(" ")[2] for each in starts] == ["-", "1"]
    committed = [each for each in own if "is committed" in each.getMessage()]
    assert [fields_of(each) for each in committed] == [
        ("totals", "", 0, ""), ("totals", "", 1, ""),
    ]  # fmt: skip
