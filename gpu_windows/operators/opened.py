"""Functions of users in this process: those of a query are opened once, whatever operators call."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import is_dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar

from gpu_windows.functions.failures import failure
from gpu_windows.planning.plan import Plan
from gpu_windows.planning.query import Query
from gpu_windows.vocabulary.rich_functions import Closable, Openable

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
    _OPEN[query.token] = found = open_(query) if found is None else found
    _close_some([*_OPEN][:-_MOST])
    return found


def close(token: str) -> None:
    """Close what is open for the query of this token, if anything is."""
    found = _OPEN.pop(token, None)
    if found is not None:
        found.close()


@atexit.register
def _close_all() -> None:
    _close_some([*_OPEN])


def _close_some(tokens: Iterable[str]) -> None:
    each_called(partial(close, token) for token in tokens)


def each_called(calls: Iterable[Callable[[], None]]) -> None:
    """Call all, whatever some raise; then raise what the first of them raised."""
    failed: list[Exception] = []
    for call in calls:
        try:
            call()
        except Exception as error:  # noqa: BLE001 - it is raised below
            failed.append(error)
    if failed:
        raise failed[0]


def call_open(part: Any, context: Any, close_: Callable[[], None]) -> None:
    """Open a part of the user's; if it raises, close it and all that was opened with it.

    Raises
    ------
    FunctionFailedError, InvalidFunctionError
    """
    try:
        part.open(context)
    except Exception as error:
        with suppress(Exception):  # what failed first is told
            close_()
        raise failure(error, f"{type(part).__name__}.open") from error


def call_close(part: Closable) -> None:
    """Close a part of the user's.

    Raises
    ------
    FunctionFailedError, InvalidFunctionError
    """
    try:
        part.close()
    except Exception as error:
        raise failure(error, f"{type(part).__name__}.close") from error


class OpenedParts:
    """A query whose parts have been opened; also what they may ask then, a `RuntimeContext`.

    Attributes
    ----------
    query : Query
        With parts of its own: copies, as each job has some in Flink.
    keys : tuple of str
    """

    def __init__(self, query: Query) -> None:
        copies = {id(part): copy(part) for part in query.rich_parts}
        self.query: Query = _with_copies(query, copies)
        self.keys = query.display_keys
        self._open: list[Openable] = []
        for part in self.query.rich_parts:
            self._open.append(part)
            call_open(part, self, self.close)

    def close(self) -> None:
        """Close the parts, the last one first: all of them, whatever one raises."""
        parts, self._open = self._open[::-1], []
        each_called(partial(call_close, part) for part in parts)


def _with_copies(value: Any, copies: Mapping[int, Any]) -> Any:
    """Return a query, or a part of one, with copies in place of some parts, which go by `id`.

    Parts that are no dataclasses are taken as they are.
    """
    if id(value) in copies:
        return copies[id(value)]
    if isinstance(value, type) or not is_dataclass(value):
        return value
    found = {name: _with_copies(each, copies) for name, each in vars(value).items()}
    changed = {name: each for name, each in found.items() if each is not vars(value)[name]}
    if not changed:
        return value
    made = copy(value)  # not replace: the token stays
    vars(made).update(changed)
    return made


def with_opened(plan: AnyPlan) -> AnyPlan:
    """Return a plan whose query has parts that are open in this process."""
    if not plan.query.rich_parts:
        return plan
    return replace(plan, query=opened(plan.query, OpenedParts).query)
