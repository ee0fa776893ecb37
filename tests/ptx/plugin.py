"""``pytest -p tests.ptx.plugin``: ``device="cuda"`` is this CPU, running the PTX of kernels."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from gpu_windows.kernels.cuda.cupy_kernels import cupy_kernels
from gpu_windows.kernels.cuda.kernel import all_kernels
from tests.ptx.arrays import computed
from tests.ptx.installed import installed

if TYPE_CHECKING:
    from tests.ptx.device import Device

_stack = ExitStack()
_devices: list[Device] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what a run of all checks asks for."""
    parser.addoption("--every-kernel", action="store_true", help="fail if a kernel never ran")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Report kernels that never ran, and calls of CuPy that `gpu-windows warm` leaves out."""
    if not session.config.getoption("--every-kernel"):
        return
    missing = sorted(set(all_kernels()) - set(device().launches))
    cold = sorted(computed - _warmed())
    for what, names in (("never launched", missing), ("not in cupy_kernels.py", cold)):
        if names:
            print(f"{what}: {', '.join(map(str, names))}")  # noqa: T201
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _warmed() -> set[tuple[str, ...]]:
    """Return the calls of CuPy that `gpu-windows warm` makes, as `computed` has them."""
    before = computed.copy()
    computed.clear()
    for kernel in cupy_kernels().values():
        kernel.compile()
    warmed = computed.copy()
    computed.update(before)
    return warmed


def pytest_configure() -> None:
    """Install the device."""
    _devices.append(_stack.enter_context(installed()))


def pytest_unconfigure() -> None:
    """Take it away again."""
    _stack.close()


def device() -> Device:
    """Return the device that is installed."""
    return _devices[-1]
