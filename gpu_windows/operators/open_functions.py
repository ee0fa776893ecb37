"""Cache of opened user functions in this process: each query's are opened once."""

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

#: Queries whose functions may be open; beyond that the least recently used one is closed.
_MAX_OPEN = 64


class Opened(Protocol):
    """The opened functions of a query."""

    def close(self) -> None:
        """Close them."""


AnyQuery = TypeVar("AnyQuery", bound=Query)
AnyOpened = TypeVar("AnyOpened", bound=Opened)
AnyPlan = TypeVar("AnyPlan", bound=Plan)

_OPEN: dict[str, Any] = {}


def open_for(query: AnyQuery, open_: Callable[[AnyQuery], AnyOpened]) -> AnyOpened:
    """Return the opened functions of a query; call ``open_`` if this process has none yet."""
    cached: AnyOpened | None = _OPEN.pop(query.token, None)
    _OPEN[query.token] = cached = open_(query) if cached is None else cached
    _close_some([*_OPEN][:-_MAX_OPEN])
    return cached


def close(token: str) -> None:
    """Close the functions of the query of this token, if any are open."""
    found = _OPEN.pop(token, None)
    if found is not None:
        found.close()


@atexit.register
def _close_all() -> None:
    _close_some([*_OPEN])


def _close_some(tokens: Iterable[str]) -> None:
    call_all(partial(close, token) for token in tokens)


def call_all(calls: Iterable[Callable[[], None]]) -> None:
    """Call all, even if some raise; then raise the first error."""
    failed: list[Exception] = []
    for call in calls:
        try:
            call()
        except Exception as error:  # noqa: BLE001 - it is raised below
            failed.append(error)
    if failed:
        raise failed[0]


def call_open(part: Any, context: Any, close_: Callable[[], None]) -> None:
    """Open a user function; if that raises, close it and all that were opened with it.

    Raises
    ------
    FunctionFailedError, InvalidFunctionError
    """
    try:
        part.open(context)
    except Exception as error:
        with suppress(Exception):  # the first error is the one to report
            close_()
        raise failure(error, f"{type(part).__name__}.open") from error


def call_close(part: Closable) -> None:
    """Close a user function.

    Raises
    ------
    FunctionFailedError, InvalidFunctionError
    """
    try:
        part.close()
    except Exception as error:
        raise failure(error, f"{type(part).__name__}.close") from error


class OpenedParts:
    """A query with opened rich functions, and their `RuntimeContext`.

    Attributes
    ----------
    query : Query
        With its own copies of the functions, as each Flink job has.
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
        """Close the functions, the last one first; all of them, even if one raises."""
        parts, self._open = self._open[::-1], []
        call_all(partial(call_close, part) for part in parts)


def _with_copies(value: Any, copies: Mapping[int, Any]) -> Any:
    """Return a query, or a part of one, in which some parts, keyed by `id`, become their copies.

    Parts that are not dataclasses are not searched.
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


def with_open_functions(plan: AnyPlan) -> AnyPlan:
    """Return a plan whose rich functions are open in this process."""
    return replace(plan, query=open_for(plan.query, OpenedParts).query)
