"""Accumulators of user-defined aggregates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from gpu_windows.aggregates.user import BoundUserAggregate
from gpu_windows.functions.checked_results import check_not_cut
from gpu_windows.functions.failures import call_user
from gpu_windows.user_values import copy_value
from gpu_windows.vocabulary.triggers import Row


class UserAccumulator:
    """The accumulator of a user-defined aggregate."""

    def __init__(self, bound: BoundUserAggregate, display_name: Callable[[str], str]) -> None:
        self.function = bound.function
        self._columns = {display_name(name): name for name in bound.columns}
        self.value = copy_value(self._call(self.function.create_accumulator))

    def add(self, row: Row) -> None:
        """Add a row."""
        seen = {user_name: copy_value(row[name]) for user_name, name in self._columns.items()}
        self._set(self._call(self.function.add, seen, self.value))

    def absorb(self, other: Self) -> None:
        """Merge with the accumulator of another window."""
        self._set(self._call(self.function.merge, self.value, other.value))

    def result(self) -> object:
        """Return the function's result."""
        return self._call(self.function.get_result, copy_value(self.value))

    def _call(self, method: Callable[..., Any], *arguments: Any) -> Any:
        def where() -> str:
            of = ", ".join(map(repr, arguments))
            return f"{type(self.function).__name__}.{method.__name__}({of})"

        return call_user(method, where, *arguments)

    def _set(self, value: object) -> None:
        """Set the accumulator; reject a value that a log would truncate, even without a log.

        A new value is copied; the accumulator itself, which ``add`` may have changed, is not.
        """
        if value is not self.value:
            value = copy_value(value)
        self.value = check_not_cut(value, self.function.accumulator, type(self.function).__name__)
