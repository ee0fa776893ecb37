"""Calls of user-defined assigners and evictors, with checks of their results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gpu_windows.errors import InvalidFunctionError
from gpu_windows.functions.failures import call_user, describe_row, errors_located
from gpu_windows.operators.row_at_a_time.functions import StoredRow
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.validation import is_user_code
from gpu_windows.user_values import copy_value, to_tick
from gpu_windows.vocabulary.evictors import Element, EvictorContext
from gpu_windows.vocabulary.triggers import Row
from gpu_windows.vocabulary.windows import AssignerContext, GlobalWindow, TimeWindow, Window

#: A method of an evictor.
Evict = Callable[..., Sequence[Element]]


class UserParts:
    """The assigner and the evictor of a query, and the rows that they see."""

    def __init__(self, query: WindowQuery) -> None:
        self._assigner, self._evictor = query.assigner, query.evictor
        self._assigns = is_user_code(query.assigner)
        self._sees = query.has_user_parts

    def row(self, element: StoredRow) -> Row:
        """Return the row for assigner, trigger and evictor; a copy for user code."""
        return copy_value(element.seen) if self._sees else element.seen

    def windows(self, element: StoredRow, context: AssignerContext) -> Sequence[Window]:
        """Return the windows of a row.

        Raises
        ------
        FunctionFailedError
            If a user's assigner raises.
        InvalidFunctionError
            If it returns anything but windows whose bounds are integers of 64 bits, in order.
        """
        assign = self._assigner.assign_windows
        if not self._assigns:
            return assign(element.seen, element.timestamp, context)
        called = f"{type(self._assigner).__name__}.assign_windows"

        def where() -> str:
            return f"{called}, at {describe_row(element.seen, element.timestamp)}"

        found = call_user(assign, where, self.row(element), element.timestamp, context)
        if isinstance(found, TimeWindow) or not isinstance(found, Iterable):
            raise InvalidFunctionError(f"{called} must return a list of windows", value=repr(found))
        return [checked_window(each, called) for each in found]

    def evict(
        self,
        evict: Evict,
        rows: Sequence[StoredRow],
        window: Window,
        context: EvictorContext,
        at: Callable[[], str],
    ) -> list[StoredRow]:
        """Return the rows of a window that an evictor retains.

        Raises
        ------
        FunctionFailedError
            If it raises; the message has the method, and the window from ``at``.
        InvalidFunctionError
            If it returns a row twice, or one that it was not given.
        """
        elements = [Element(self.row(row), row.timestamp, i) for i, row in enumerate(rows)]
        called = f"{type(self._evictor).__name__}.{evict.__name__}"
        with errors_located(called, at):
            places = [each.place for each in evict(elements, window, context)]
            if len({*places} & {*range(len(rows))}) < len(places):
                rule = f"{called} must return rows that it was given, each once"
                raise InvalidFunctionError(rule, value=f"rows {places} of {len(rows)}")
            return [rows[place] for place in places]


def checked_window(window: Any, called: str) -> Window:
    """Return a window of a user function, if it is valid.

    Raises
    ------
    InvalidFunctionError
        If it is not a window, ends before it begins, or a bound is not an integer of 64 bits.
    """
    if isinstance(window, GlobalWindow):
        return window
    if isinstance(window, TimeWindow):
        start, end = map(to_tick, window)
        if start is not None and end is not None and start <= end:
            return window
    rule = f"{called} must return windows that begin and end at ticks, integers of 64 bits"
    raise InvalidFunctionError(rule, value=repr(window))
