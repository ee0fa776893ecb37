"""What an interval join holds in memory while it gives a hundred million pairs of one hot key.

Run as a module it is the process that is measured: what a Spark worker runs, its input made here,
its results dropped batch by batch. The last line that it writes is what was seen, as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.runners.arrow_source import ArrowOutputs
from gpu_windows.runners.local import batches_for

LEFT, RIGHT = 105_000, 20_000
SECOND = 1_000_000
BOUND, SPAN = 5 * SECOND, 200 * SECOND
#: Bytes that the process may have resident at most.
MOST = 2 << 30
STATUS = Path("/proc/self/status")


def side(rows: int) -> pa.Table:
    """Return rows of one key: key, time, value."""
    random = np.random.default_rng(rows)
    ts = pa.array(np.sort(random.integers(0, SPAN, rows)), pa.timestamp("us", "UTC"))
    return pa.table({"key": np.zeros(rows, np.int64), "ts": ts, "value": random.normal(size=rows)})


def expected() -> int:
    """Return the number of pairs, by another algorithm."""
    left, right = (side(rows)["ts"].cast(pa.int64()).to_numpy() for rows in (LEFT, RIGHT))
    first = np.searchsorted(right, left - BOUND, side="left")
    return int(np.sum(np.searchsorted(right, left + BOUND, side="right") - first))


def batches() -> Iterator[pa.RecordBatch]:
    """Run the tasks of a Spark worker, the first one's results as the second one's input."""
    from gpu_windows.spark_glue.tasks.workers import PackRows, RunShards

    strategy = gw.WatermarkStrategy.for_bounded_out_of_orderness("5 seconds")
    left, right = (
        gw.stream(side(rows)).event_time("ts", strategy).key_by("key") for rows in (LEFT, RIGHT)
    )
    joined = left.interval_join(right).between("-5 seconds", "5 seconds").options(device="cpu")
    outputs = joined.with_outputs().select(["value", "ts"], ["value", "ts"])
    assert isinstance(outputs, ArrowOutputs)
    plan = outputs.plan
    rows = (batch for t in batches_for(plan, outputs.data) for batch in t.to_batches())
    packed = [*PackRows(plan)(rows)]
    yield from RunShards(plan, packed=True)(iter(packed))


def peak_bytes() -> int:
    """Return the most that this process has had resident (`ru_maxrss` counts its parent too)."""
    (line,) = (line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def main() -> None:
    """Count the pairs, and say what that took."""
    begin, pairs, largest = time.perf_counter(), 0, 0
    for batch in batches():
        pairs += batch.num_rows - batch.column("right_ts").null_count  # counters have no time
        largest = max(largest, batch.num_rows)
    seconds = time.perf_counter() - begin
    seen = {"pairs": pairs, "largest": largest, "seconds": seconds, "peak_bytes": peak_bytes()}
    sys.stdout.write(f"{json.dumps(seen)}\n")


@pytest.mark.slow
@pytest.mark.skipif(not STATUS.exists(), reason="needs Linux, which says what was resident")
def test_a_hundred_million_pairs_stay_below_two_gibibytes() -> None:
    pytest.importorskip("pyspark", reason="needs the extra `spark`")
    root = str(Path(__file__).parents[3])
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    finished = subprocess.run(
        [sys.executable, __file__],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    seen = json.loads(finished.stdout.splitlines()[-1])
    sys.stdout.write(f"{seen}\n")
    assert seen["pairs"] == expected() > 100_000_000
    assert seen["peak_bytes"] < MOST


if __name__ == "__main__":
    main()
