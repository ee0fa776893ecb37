"""A first call on a device that is there: where it fails, ``device="auto"`` is the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.ptx
pytest.importorskip("numba_cuda")

from gpu_windows.doctor import Status, gpu  # noqa: E402
from gpu_windows.errors import DeviceMemoryError  # noqa: E402
from gpu_windows.kernels import backend  # noqa: E402
from gpu_windows.kernels.backend import Backend  # noqa: E402
from gpu_windows.kernels.cuda import primitives, probe  # noqa: E402
from gpu_windows.operators.device import MIN_DEVICE_ROWS, Kernels, Map  # noqa: E402
from tests.ptx.device import Device  # noqa: E402

DRIVER = gpu.Driver((13, 0), (gpu.Device("NVIDIA H200", (9, 0), 141 << 30),))


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    """A device that runs compiled kernels on this CPU, not tried yet."""
    monkeypatch.setattr(probe, "_answers", {})
    return Device(monkeypatch)


def _where(kernels: Kernels, rows: int = MIN_DEVICE_ROWS) -> str:
    def name(chosen: Backend, _: Map) -> str:
        return chosen.name

    return kernels.run(rows, name)


def _failing(error: Exception) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    return fail


@pytest.mark.usefixtures("device")
def test_a_device_that_answers_is_used() -> None:
    assert _where(Kernels("auto")) == "cuda"
    assert probe._answers == {0: None}


def test_small_batches_try_no_device(device: Device) -> None:
    assert _where(Kernels("auto"), MIN_DEVICE_ROWS - 1) == "cpu"
    assert not device.launches
    assert probe._answers == {}


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("name", ["argsort", "gather", "launch"])
def test_a_call_that_fails_leaves_the_work_to_the_cpu(
    name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    error = RuntimeError("CUDA_ERROR_NO_BINARY_FOR_GPU\nand more")
    monkeypatch.setattr(primitives, name, _failing(error))
    kernels = Kernels("auto")
    assert [_where(kernels), _where(kernels)] == ["cpu", "cpu"]
    reason = "a first call on device 0 failed: RuntimeError: CUDA_ERROR_NO_BINARY_FOR_GPU"
    assert f"kernels run on the CPU: {reason}" in caplog.messages
    assert kernels.take_counters().device_fallbacks == 0


@pytest.mark.usefixtures("device")
def test_it_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(primitives, "argsort", _failing(RuntimeError("once")))
    assert _where(Kernels("auto")) == "cpu"
    monkeypatch.setattr(primitives, "argsort", _failing(AssertionError("again")))
    assert _where(Kernels("auto")) == "cpu"
    assert probe._answers == {0: "a first call on device 0 failed: RuntimeError: once"}


@pytest.mark.usefixtures("device")
def test_memory_that_runs_out_says_nothing_of_the_next_task(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(primitives, "argsort", _failing(DeviceMemoryError("no room")))
        assert _where(Kernels("auto")) == "cpu"
    assert _where(Kernels("auto")) == "cuda"


@pytest.mark.usefixtures("device")
def test_wrong_results_leave_the_work_to_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def reverse(keys: Any) -> Any:
        return primitives.to_device(np.arange(len(keys), dtype=np.int64)[::-1].copy())

    monkeypatch.setattr(primitives, "argsort", reverse)
    assert _where(Kernels("auto")) == "cpu"
    reason = "a first call on device 0 failed: ArithmeticError: it gave wrong numbers of rows"
    assert probe._answers == {0: reason}


@pytest.mark.usefixtures("device")
def test_who_asks_for_the_device_gets_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(primitives, "argsort", _failing(RuntimeError("no kernel image")))
    kernels = Kernels("cuda")
    with pytest.raises(RuntimeError, match="no kernel image"):
        kernels.run(1, lambda chosen, _: primitives.argsort(chosen.to_device(np.zeros(1))))


@pytest.mark.usefixtures("device")
def test_the_doctor_tries_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert gpu.check_backend(DRIVER).status is Status.OK
    monkeypatch.setattr(probe, "_answers", {})
    monkeypatch.setattr(primitives, "argsort", _failing(RuntimeError("no kernel image")))
    finding = gpu.check_backend(DRIVER)
    assert finding.status is Status.WARN
    assert "cpu: a first call on device 0 failed: RuntimeError: no kernel image" in finding.found


@pytest.mark.usefixtures("device")
def test_the_cpu_is_not_tried() -> None:
    chosen = backend.select("cpu")
    assert backend.probe(chosen) is chosen
    assert probe._answers == {}
