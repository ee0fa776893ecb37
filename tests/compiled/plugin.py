"""``pytest -p tests.compiled.plugin``: ``device="cuda"`` is this CPU, running compiled kernels."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from gpu_windows.kernels.cuda.kernel import all_kernels
from tests.compiled.installed import installed

if TYPE_CHECKING:
    from tests.compiled.device import Device

_stack = ExitStack()
_devices: list[Device] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what a run of all checks asks for."""
    parser.addoption("--every-kernel", action="store_true", help="fail if a kernel never ran")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell of kernels that never ran."""
    if not session.config.getoption("--every-kernel"):
        return
    missing = sorted(set(all_kernels()) - set(device().launches))
    if missing:
        print(f"never launched: {', '.join(missing)}")  # noqa: T201
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_configure() -> None:
    """Install the device."""
    _devices.append(_stack.enter_context(installed()))


def pytest_unconfigure() -> None:
    """Take it away again."""
    _stack.close()


def device() -> Device:
    """Return the device that is installed."""
    return _devices[-1]
