"""A session of a device that is none."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from gpu_windows.kernels.cuda.session import Session


class NoDevice(nullcontext[None]):
    """In the place of CuPy's device and stream."""

    def use(self) -> None:
        """Work on it from now on."""


def session_of(arrays: Any, **more: Any) -> Session:
    """Return a session whose arrays are made by something else than CuPy."""
    return Session(arrays, NoDevice(), NoDevice(), NoDevice, lambda: None, 0, {}, **more)
