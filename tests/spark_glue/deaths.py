"""Drivers of streaming queries that die between two steps of a micro-batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


class DeathError(Exception):
    """Of a driver, between two steps."""


def dying_before(owner: type, name: str) -> Callable[[pytest.MonkeyPatch], None]:
    def patch(patched: pytest.MonkeyPatch) -> None:
        def die(*_: Any) -> None:
            raise DeathError

        patched.setattr(owner, name, die)

    return patch


def dying_after(owner: type, name: str) -> Callable[[pytest.MonkeyPatch], None]:
    def patch(patched: pytest.MonkeyPatch) -> None:
        whole = getattr(owner, name)

        def die(*arguments: Any) -> None:
            whole(*arguments)
            raise DeathError

        patched.setattr(owner, name, die)

    return patch
