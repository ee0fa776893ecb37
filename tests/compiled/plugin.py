"""``pytest -p tests.compiled.plugin``: ``device="cuda"`` is this CPU, running compiled kernels."""

from __future__ import annotations

import faulthandler

import pytest

from tests.compiled.device import install

_patch = pytest.MonkeyPatch()


def pytest_configure() -> None:
    """Install the device; an access behind an array ends the process with where it was."""
    faulthandler.enable()
    install(_patch)


def pytest_unconfigure() -> None:
    """Take it away again."""
    _patch.undo()
