"""The choice of a back end, and what it says where there is no device."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from gpu_windows.errors import DeviceUnavailableError
from gpu_windows.kernels import backend


@pytest.fixture(autouse=True)
def asked_anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    backend.why_no_cuda.cache_clear()
    yield
    backend.why_no_cuda.cache_clear()


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module, as if a driver were installed."""
    module = importlib.import_module("gpu_windows.kernels.cuda.session")
    monkeypatch.setattr(module, "_has_driver", lambda: True)
    return module


@pytest.fixture
def no_device() -> None:
    if backend.why_no_cuda() is None:
        pytest.skip("there is a CUDA device here")


def test_cpu_when_asked_for() -> None:
    chosen = backend.select("cpu")
    assert (chosen.name, chosen.reason) == ("cpu", "asked for")
    assert chosen.assign.assign_slices.__module__ == "gpu_windows.kernels.cpu.assign"


@pytest.mark.usefixtures("no_device")
def test_auto_without_a_device_is_cpu_and_says_why() -> None:
    chosen = backend.select("auto")
    assert chosen.name == "cpu"
    assert chosen.reason == backend.why_no_cuda()


@pytest.mark.usefixtures("no_device")
def test_the_choice_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    backend._load.cache_clear()
    with caplog.at_level("INFO", logger="gpu_windows.kernels.backend"):
        chosen = backend.select("auto")
    assert caplog.messages == [f"kernels run on cpu: {chosen.reason}"]


@pytest.mark.usefixtures("no_device")
def test_cuda_without_a_device_is_an_error_that_says_why() -> None:
    with pytest.raises(DeviceUnavailableError, match="needs a usable CUDA device: ") as raised:
        backend.select("cuda")
    assert str(backend.why_no_cuda()) in str(raised.value)


def test_no_visible_device_is_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert backend.select("auto").reason.startswith("CUDA_VISIBLE_DEVICES is empty")
    with pytest.raises(DeviceUnavailableError, match="CUDA_VISIBLE_DEVICES is empty"):
        backend.select("cuda")


def test_numbas_simulator_is_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it would compile runs on no device."""
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", "1")
    assert backend.select("auto").name == "cpu"
    with pytest.raises(DeviceUnavailableError, match=r"NUMBA_ENABLE_CUDASIM is set.*unset it"):
        backend.select("cuda")


def test_a_missing_module_of_cuda_is_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> ModuleType:
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(importlib, "import_module", refuse)
    assert "a CUDA package is missing (No module named" in str(backend.why_no_cuda())


# ---- what the CUDA back end says of itself


def test_no_driver_is_the_reason(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_has_driver", lambda: False)
    assert session.why_not() == "there is no NVIDIA driver (libcuda.so.1) on this machine"


@pytest.mark.parametrize("package", ["numba_cuda", "cupy"])
def test_a_missing_package_is_the_reason(
    session: Any, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setattr(
        session.importlib.util, "find_spec", lambda name: None if name == package else object()
    )
    reason = f"the package {package} is missing; install gpu-windows[cu13] or [cu12]"
    assert session.why_not() == reason


def test_a_driver_that_fails_is_the_reason(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> str:
        raise RuntimeError("cudaErrorInsufficientDriver")

    monkeypatch.setattr(session.importlib.util, "find_spec", lambda _: object())
    monkeypatch.setattr(session, "_why_no_cuda", fail)
    assert session.why_not() == "CUDA cannot be used: cudaErrorInsufficientDriver"


_TOTAL = 10 << 30


@pytest.mark.parametrize(
    ("environment", "bytes_"),
    [
        ({"RAPIDS_POOLED_MEM_SIZE": "600", "RAPIDS_POOLED_MEM_MAX_SIZE": "0"}, 600),
        ({"RAPIDS_POOLED_MEM_SIZE": "100", "RAPIDS_POOLED_MEM_MAX_SIZE": "700"}, 700),
        ({"GPU_WINDOWS_DEVICE_MEMORY": "80", "RAPIDS_POOLED_MEM_SIZE": "600"}, 80),
        ({"GPU_WINDOWS_DEVICE_MEMORY": str(2 * _TOTAL)}, _TOTAL),
        ({"GPU_WINDOWS_DEVICE_MEMORY": "much"}, (9 << 30) - (512 << 20)),
    ],
)
def test_how_much_of_the_device_it_may_hold(
    session: Any, environment: dict[str, str], bytes_: int
) -> None:
    assert session.memory_limit(environment, _TOTAL, 1.0) == bytes_


@pytest.mark.parametrize("tasks", [1, 2, 4, 8, 100])
@pytest.mark.parametrize("total", [4 << 30, 16 << 30, 141 << 30])
def test_tasks_that_share_a_device_fit_on_it(session: Any, tasks: int, total: int) -> None:
    limit = session.memory_limit({}, total, 1 / tasks)
    assert 0.44 * total / tasks <= limit <= 0.9 * total / tasks
    if total / tasks > 3 << 30:  # else a context takes most of a task's share
        assert tasks * (limit + session.CONTEXT_BYTES) <= 0.91 * total
