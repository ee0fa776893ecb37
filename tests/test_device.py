"""Where kernels run: per call, halved and then on the CPU when device memory runs out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpu_windows.errors import DeviceMemoryError, DeviceUnavailableError
from gpu_windows.kernels.backend import Backend, select
from gpu_windows.operators import device
from gpu_windows.operators.device import Kernels


@pytest.fixture
def pretend_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a second CPU back end pass for a device."""
    cpu = select("cpu")
    pretended = replace(cpu, name="cuda", reason="a test")
    monkeypatch.setattr(device, "select", lambda name: cpu if name == "cpu" else pretended)


def limited(rows: int) -> Any:
    """Return work that fits a device up to so many rows, and always fits the CPU."""

    def work(backend: Backend, begin: int, end: int) -> tuple[str, int, int]:
        if backend.name == "cuda" and end - begin > rows:
            raise DeviceMemoryError("a batch must fit into device memory")
        return backend.name, begin, end

    return work


@pytest.mark.usefixtures("pretend_cuda")
def test_a_batch_that_does_not_fit_is_halved() -> None:
    kernels = Kernels("cuda")
    parts = kernels.split(100_000, limited(30_000))
    assert {name for name, _, _ in parts} == {"cuda"}
    assert [begin for _, begin, _ in parts] == [0, 25_000, 50_000, 75_000]
    assert parts[-1][2] == 100_000
    counted = kernels.counted()
    assert (counted.cuda_batches, counted.cpu_batches, counted.device_fallbacks) == (4, 0, 0)


@pytest.mark.usefixtures("pretend_cuda")
def test_at_last_the_cpu_takes_it_and_that_is_counted() -> None:
    kernels = Kernels("cuda")
    parts = kernels.split(40_000, limited(10))
    assert {name for name, _, _ in parts} == {"cpu"}
    assert sum(end - begin for _, begin, end in parts) == 40_000
    counted = kernels.counted()
    assert counted.device_fallbacks == counted.cpu_batches == len(parts)
    assert kernels.counted().cpu_batches == 0


@pytest.mark.usefixtures("pretend_cuda")
def test_auto_keeps_small_batches_off_the_device() -> None:
    kernels = Kernels("auto")
    assert kernels.run(100, lambda backend: backend.name) == "cpu"
    assert kernels.run(device.WORTH_ROWS, lambda backend: backend.name) == "cuda"
    assert [name for name, _, _ in kernels.split(100, limited(0))] == ["cpu"]


def test_cuda_without_a_device_is_refused() -> None:
    with pytest.raises(DeviceUnavailableError):
        Kernels("cuda")
