"""``pytest -p tests.compiled.plugin``: ``device="cuda"`` is this CPU, running compiled kernels."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from tests.compiled.installed import installed

if TYPE_CHECKING:
    from tests.compiled.device import Device

_stack = ExitStack()
_devices: list[Device] = []


def pytest_configure() -> None:
    """Install the device."""
    _devices.append(_stack.enter_context(installed()))


def pytest_unconfigure() -> None:
    """Take it away again."""
    _stack.close()


def device() -> Device:
    """Return the device that is installed."""
    return _devices[-1]
