"""How many rows go into a call of kernels: more where a device takes them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.kernels.backend import select
from gpu_windows.operators import device
from gpu_windows.operators.device import gather
from gpu_windows.planning.plan import BATCH_ROWS
from gpu_windows.runners.outputs import Outputs

ROWS = 4 * BATCH_ROWS + 1


@pytest.fixture
def pretended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a second CPU back end pass for a device."""
    cpu = select("cpu")
    found = replace(cpu, name="cuda", reason="a test")
    monkeypatch.setattr(device, "select", lambda name: cpu if name == "cpu" else found)
    monkeypatch.setattr(device, "probe", lambda chosen: chosen)


def outputs(**options: object) -> Outputs:
    times = np.arange(ROWS) * 1_000
    data = pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC")), "k": times % 7})
    chunks = data.to_batches(max_chunksize=BATCH_ROWS)
    stream = gw.stream(pa.Table.from_batches(chunks)).event_time(
        "ts", gw.WatermarkStrategy.for_monotonous_timestamps()
    )
    windowed = stream.key_by("k").window(gw.TumblingEventTimeWindows.of("1 minute"))
    return windowed.options(threads=1, **options).with_outputs().aggregate(n=gw.count())


def calls_of(found: Outputs, name: str = "cuda_batches") -> int:
    """Return how many calls of kernels there were."""
    return int(found.metrics()[name][0].as_py())


@pytest.mark.usefixtures("pretended")
def test_a_device_takes_the_rows_of_many_batches_in_a_call() -> None:
    found, on_cpu = outputs(), outputs(device="cpu")
    assert calls_of(on_cpu, "cpu_batches") > 4
    assert calls_of(found) == 1  # what is smaller than a call is worth stays on the CPU
    assert found.result().equals(on_cpu.result())


@pytest.mark.usefixtures("pretended")
def test_a_number_that_the_query_gives_holds_on_a_device_too() -> None:
    assert calls_of(outputs(batch_rows=BATCH_ROWS)) == 4


@pytest.mark.usefixtures("pretended")
def test_bytes_bound_a_call_on_a_device_too(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = pa.RecordBatch.from_pydict({"v": np.arange(100)})
    assert [len(t) for t in gather([batch] * 5, 10**6, 2 * batch.nbytes)] == [200, 200, 100]
    monkeypatch.setattr(device, "ENOUGH_DEVICE_BYTES", 1)
    assert calls_of(outputs()) == 4
