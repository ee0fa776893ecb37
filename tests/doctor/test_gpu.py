"""The doctor on GPUs: every check with good and with bad input, and the question to the driver."""

from __future__ import annotations

import ctypes
from importlib import metadata
from types import SimpleNamespace
from typing import Any

import pytest

from gpu_windows.doctor import Status, gpu
from gpu_windows.errors import DeviceUnavailableError
from gpu_windows.kernels import backend
from tests.doctor.findings import judged

OK, WARN, FAIL = Status.OK, Status.WARN, Status.FAIL
H200 = gpu.Driver((13, 0), (gpu.Device("NVIDIA H200", (9, 0), 141 << 30),))
NO_DRIVER = "no NVIDIA driver (libcuda.so.1)"
COMPLETE = dict.fromkeys(("numba-cuda", "cupy-cuda13x", "pylibcudf-cu13", "rmm-cu13"), "26.0")


@pytest.mark.parametrize(
    ("driver", "visible", "status", "parts"),
    [
        (H200, None, OK, ["NVIDIA H200 (sm_90, 141 GiB)", "CUDA 13.0"]),
        (H200, "0", OK, ["CUDA_VISIBLE_DEVICES='0'"]),
        (NO_DRIVER, None, OK, ["none"]),
        (gpu.Driver((13, 0), ()), "", WARN, ["no device", "unset CUDA_VISIBLE_DEVICES"]),
        ("a driver is installed, but cuInit returned CUDA error 100", "", WARN, ["unset"]),
        ("a driver is installed, but cuInit returned CUDA error 999", None, WARN, ["nvidia-smi"]),
    ],
)
def test_gpu(driver: Any, visible: str | None, status: Status, parts: list[str]) -> None:
    judged(gpu.check_gpu(driver, visible), status, *parts)


@pytest.mark.parametrize(
    ("packages", "driver", "status", "part"),
    [
        (COMPLETE, H200, OK, "rmm-cu13"),
        ({}, NO_DRIVER, OK, "not needed"),
        ({}, H200, WARN, "pip install 'gpu-windows[cu13]'"),
        ({"numba-cuda": "0.30.4"}, H200, WARN, "missing: cupy, pylibcudf, rmm"),
        (COMPLETE | {"cupy-cuda12x": "13.6"}, H200, FAIL, "12 and 13"),
        (COMPLETE | {"cupy-cuda13x": "14.1.0"}, H200, FAIL, "CuPy 14.1.0 sorts wrongly"),
        (COMPLETE, gpu.Driver((12, 8), H200.devices), FAIL, "gpu-windows[cu12]"),
    ],
)
def test_cuda_packages(packages: dict[str, str], driver: Any, status: Status, part: str) -> None:
    judged(gpu.check_packages(packages, driver), status, part)


@pytest.mark.parametrize(
    ("compilers", "driver", "status", "part"),
    [
        ({"nvidia-nvvm": "13.0.88"}, H200, OK, "13.0.88"),
        ({"nvidia-cuda-nvcc-cu12": "12.9.86"}, H200, OK, "12.9.86"),
        ({"nvidia-nvvm": "13.4.92"}, NO_DRIVER, OK, "not needed"),
        ({"nvidia-nvvm": "13.4.92"}, H200, WARN, "pip install 'nvidia-nvvm==13.0.*'"),
        ({}, H200, WARN, "numba-cuda[cu13]"),
    ],
)
def test_nvvm(compilers: dict[str, str], driver: Any, status: Status, part: str) -> None:
    judged(gpu.check_nvvm(compilers, driver), status, part)


def test_the_back_end(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = SimpleNamespace(name="cpu", reason="there is no driver")
    monkeypatch.setattr(backend, "select", lambda _: chosen)
    judged(gpu.check_backend(NO_DRIVER), OK, "cpu: there is no driver")
    judged(gpu.check_backend(H200), WARN, "there is a GPU")

    def refuse(_: str) -> None:
        raise DeviceUnavailableError("none")

    monkeypatch.setattr(backend, "select", refuse)
    judged(gpu.check_backend(H200), FAIL, "nothing")


class _Cuda:
    """Stands for libcuda: one device; ``broken`` is the function that fails."""

    def __init__(self, broken: str = "") -> None:
        self.broken = broken

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> int:
            if name == self.broken:
                return 100
            values = {
                "cuDriverGetVersion": 13000,
                "cuDeviceGetCount": 1,
                "cuDeviceTotalMem_v2": 1 << 30,
            }
            if name in values:
                arguments[0]._obj.value = values[name]
            elif name == "cuDeviceGetName":
                arguments[0].value = b"NVIDIA L4"
            elif name == "cuDeviceGetAttribute":
                arguments[0]._obj.value = {75: 8, 76: 9}[arguments[1]]
            return 0

        return call


def test_the_driver_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: _Cuda())
    assert gpu.find_driver() == gpu.Driver((13, 0), (gpu.Device("NVIDIA L4", (8, 9), 1 << 30),))
    monkeypatch.setattr(ctypes, "CDLL", lambda _: _Cuda(broken="cuInit"))
    assert gpu.find_driver() == "a driver is installed, but cuInit returned CUDA error 100"

    def missing(_: str) -> None:
        raise OSError

    monkeypatch.setattr(ctypes, "CDLL", missing)
    assert gpu.find_driver() == NO_DRIVER


def test_cuda_packages_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["cupy-cuda13x", "numpy", "RMM-cu13", "numba-cuda", "numba"]
    found = [SimpleNamespace(name=name, version="1.0") for name in names]
    monkeypatch.setattr(metadata, "distributions", lambda: found)
    assert list(gpu.cuda_packages()) == ["cupy-cuda13x", "numba-cuda", "rmm-cu13"]
