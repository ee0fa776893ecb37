"""``pytest -p tests.compiled.plugin``: ``device="cuda"`` is this CPU, running compiled kernels."""

from __future__ import annotations

import faulthandler

import pytest

from tests.compiled.device import Device

_patch = pytest.MonkeyPatch()
_devices: list[Device] = []


def pytest_configure() -> None:
    """Install the device; an access behind an array ends the process with where it was."""
    faulthandler.enable()
    _devices.append(Device(_patch))


def pytest_unconfigure() -> None:
    """Take it away again."""
    _patch.undo()


def device() -> Device:
    """Return the device that is installed."""
    return _devices[-1]
