"""Functions of users in this process: those of a query are opened once, whatever operators call."""

from __future__ import annotations

import atexit
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from gpu_windows.functions.failures import failure
from gpu_windows.planning.plan import Plan
from gpu_windows.query.base import Query
from gpu_windows.rich_functions import Openable

#: Queries whose functions are open at most; the one that was asked for the longest ago is closed.
_MOST = 64


class Opened(Protocol):
    """What has been opened for a query."""

    def close(self) -> None:
        """Close it."""


Asked = TypeVar("Asked", bound=Query)
Found = TypeVar("Found", bound=Opened)
AnyPlan = TypeVar("AnyPlan", bound=Plan)

_OPEN: dict[str, Any] = {}


def opened(query: Asked, open_: Callable[[Asked], Found]) -> Found:
    """Return what is open for a query, opened by ``open_`` in this process if it was not yet."""
    found: Found | None = _OPEN.pop(query.token, None)
    if found is None:
        found = open_(query)
        while len(_OPEN) >= _MOST:
            close(next(iter(_OPEN)))
    _OPEN[query.token] = found
    return found


def close(token: str) -> None:
    """Close what is open for the query of this token, if anything is."""
    found = _OPEN.pop(token, None)
    if found is not None:
        found.close()


@atexit.register
def _close_all() -> None:
    for token in [*_OPEN]:
        close(token)


class OpenedParts:
    """A query whose parts have been opened; also what they may ask then, a `RuntimeContext`.

    Attributes
    ----------
    query : Query
    keys : tuple of str
    """

    def __init__(self, query: Query) -> None:
        self.query, self.keys = query, query.shown_keys
        self._open: list[Openable] = []
        for part in query.rich_parts:
            try:
                part.open(self)
            except Exception as error:
                with suppress(Exception):  # what failed first is told
                    self.close()
                raise failure(error, f"{type(part).__name__}.open") from error
            self._open.append(part)

    def close(self) -> None:
        """Close the parts, the last one first."""
        while self._open:
            self._open.pop().close()


def with_opened(plan: AnyPlan) -> AnyPlan:
    """Return a plan whose query has parts that are open in this process."""
    if not plan.query.rich_parts:
        return plan
    return replace(plan, query=opened(plan.query, OpenedParts).query)
