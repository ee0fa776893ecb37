"""Micro-batches of any size: what crosses together is bounded, and is taken as it comes."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from benchmarks.session_settings import change_settings
from gpu_windows.functions.window import Aggregates
from gpu_windows.operators.base import Emission
from gpu_windows.operators.build import stateful_operator
from gpu_windows.planning.plan import Plan
from gpu_windows.planning.planner import plan
from gpu_windows.spark_glue.contract.output_kinds import LATE, RESULT
from gpu_windows.spark_glue.session.settings import SETTINGS
from gpu_windows.spark_glue.tasks import shard_run
from gpu_windows.spark_glue.tasks.packing import from_ipc
from gpu_windows.vocabulary.options import Options
from tests.operators.state.put_away import rows
from tests.planning.queries import query
from tests.spark_glue.shard import Shard

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = 6


def taken(planned: Plan, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return in which order tables are read and rows are processed."""
    order: list[str] = []

    def noted(*arguments: Any, **options: Any) -> Any:
        operator: Any = stateful_operator(*arguments, **options)
        process = operator.process

        def noting(table: pa.Table) -> Any:
            order.append("process")
            return process(table)

        operator.process = noting
        return operator

    def tables() -> Iterator[pa.Table]:
        for _ in range(TABLES):
            order.append("read")
            yield rows(1, 2, 3)

    monkeypatch.setattr(shard_run, "stateful_operator", noted)
    assert sum(len(each.results) for each in Shard(planned).emissions(tables(), 100))
    return order


def test_rows_are_taken_as_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    made = query(gw.TumblingEventTimeWindows(10), options=Options(device="cpu", batch_rows=3))
    assert isinstance(made.function, Aggregates)
    free = replace(made, function=Aggregates(made.function.bound[:2]))
    assert not free.order_dependent(bounded=False)
    order = taken(plan(free, bounded=False, spark=True), monkeypatch)
    assert order == ["read", "process"] * TABLES


def test_rows_whose_order_matters_are_sorted_first(monkeypatch: pytest.MonkeyPatch) -> None:
    made = query(gw.TumblingEventTimeWindows(10), options=Options(device="cpu", batch_rows=3))
    assert made.order_dependent(bounded=False)
    order = taken(plan(made, bounded=False, spark=True), monkeypatch)
    assert order[:TABLES] == ["read"] * TABLES
    assert set(order[TABLES:]) == {"process"}


def test_results_cross_in_small_blobs_too(monkeypatch: pytest.MonkeyPatch) -> None:
    task = pytest.importorskip("gpu_windows.spark_glue.tasks.micro_batch")
    monkeypatch.setattr(task, "_MAX_BLOB_BYTES", 1 << 12)
    results = pa.table({"n": range(1 << 19)})
    emissions = [Emission(results.slice(0, 1 << 18), results), Emission(results, pa.table({}))]
    blobs = [*task.to_blobs(emissions, 1 << 16)]
    assert all(len(blob) <= 1 << 12 for _, blob in blobs)
    for kind, count in ((RESULT, 3 << 18), (LATE, 1 << 19)):
        found = pa.concat_tables(from_ipc(blob) for of, blob in blobs if of == (1 << 16) + kind)
        assert len(found) == count
        assert found.slice(count - (1 << 18)) == results.slice(1 << 18)


# ---- gigabytes for one shard

#: Bytes of a key, and the number of them.
WIDTH, KEYS = 1_000, 100
GIGABYTES = float(os.environ.get("GPU_WINDOWS_LARGE_GB", "3"))


@contextmanager
def resident() -> Iterator[list[int]]:
    """Note the most bytes that a Python worker of Spark's has resident."""
    most, done = [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.05):
            most[0] = max([most[0], *_workers()])

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield most
    finally:
        done.set()
        thread.join()


def _workers() -> Iterator[int]:
    """Return how many bytes each Python worker below this process has resident."""
    found = dict(filter(None, map(_status, Path("/proc").glob("[0-9]*"))))
    ours = {os.getpid()}
    while more := {pid for pid, (parent, _, _) in found.items() if parent in ours} - ours:
        ours |= more
    return (size for pid, (_, size, name) in found.items() if pid in ours and "daemon" in name)


def _status(place: Path) -> tuple[int, tuple[int, int, str]] | None:
    """Return pid, parent, resident bytes and command of a process; None if it has ended."""
    try:
        lines = (place / "status").read_text().splitlines()
        command = (place / "cmdline").read_text(errors="replace")
    except OSError:
        return None
    known = dict(line.split(":", 1) for line in lines)
    size = 1024 * int(known.get("VmRSS", "0 kB").split()[0])
    return int(place.name), (int(known["PPid"]), size, command)


@pytest.mark.slow
def test_gigabytes_for_one_shard(spark: SparkSession, tmp_path: Path) -> None:
    """More than 2 GiB at once fail in Arrow's buffers, and would fail at every restart."""
    from pyspark.sql import functions as F  # noqa: N812

    count = int(GIGABYTES * 1e9) // WIDTH
    number = F.col("id") % KEYS
    table = spark.range(0, count, 1, 4).select(
        F.timestamp_seconds(F.lit(1_700_000_000) + F.col("id") % 60).alias("ts"),
        F.rpad(number.cast("string"), WIDTH, "x").alias("k"),
        F.col("id").alias("v"),
    )
    table.write.parquet(str(tmp_path / "in"))
    end = spark.range(1).select(
        F.timestamp_seconds(F.lit(1_700_000_999)).alias("ts"), F.lit("end").alias("k"), F.lit(0)
    )
    stream = spark.readStream.schema(table.schema).parquet(str(tmp_path / "in"))
    keyed = gw.stream(stream).event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    windowed = keyed.key_by("k").window(gw.TumblingEventTimeWindows.of("1 minute"))
    found: list[pa.Table] = []

    def note(results: Any, late: Any, number: int) -> None:
        del late, number
        found.append(results.toArrow())

    def run() -> None:
        outputs = (
            windowed.options(device="cpu", shards=1)
            .with_outputs()
            .aggregate(n=gw.count(), total=gw.sum("v"))
        )
        started = gw.write_stream(outputs, note, tmp_path / "state", trigger={"availableNow": True})
        started.awaitTermination()

    with change_settings(spark, SETTINGS), resident() as most:
        began = time.monotonic()
        run()
        seconds = time.monotonic() - began
        end.toDF("ts", "k", "v").write.mode("append").parquet(str(tmp_path / "in"))
        run()  # the watermark passes the windows
    sums = pa.concat_tables(found).group_by([]).aggregate([("n", "sum"), ("total", "sum")])
    (total,) = sums.to_pylist()
    print(f"{GIGABYTES} GB in {seconds:.0f} s, {most[0] / 2**30:.2f} GiB resident")  # noqa: T201
    assert total["n_sum"] == count
    assert total["total_sum"] == count * (count - 1) // 2
    assert 0 < most[0] <= 2**31
