"""Accumulators of aggregates that users wrote."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from gpu_windows.aggregates.user import BoundUserAggregate
from gpu_windows.functions.checked_results import check_not_cut
from gpu_windows.functions.failures import call_user
from gpu_windows.user_values import copy_value
from gpu_windows.vocabulary.triggers import Row


class UserAccumulator:
    """The accumulator of a user's aggregate."""

    def __init__(self, bound: BoundUserAggregate, shown: Callable[[str], str]) -> None:
        self.function = bound.function
        self._columns = {shown(name): name for name in bound.columns}
        self.kept = copy_value(self._call(self.function.create_accumulator))

    def add(self, row: Row) -> None:
        """Add a row."""
        seen = {shown: copy_value(row[name]) for shown, name in self._columns.items()}
        self._keep(self._call(self.function.add, seen, self.kept))

    def absorb(self, other: Self) -> None:
        """Merge with the accumulator of another window."""
        self._keep(self._call(self.function.merge, self.kept, other.kept))

    def result(self) -> object:
        """Return what the function makes of it."""
        return self._call(self.function.get_result, copy_value(self.kept))

    def _call(self, method: Callable[..., Any], *arguments: Any) -> Any:
        def where() -> str:
            of = ", ".join(map(repr, arguments))
            return f"{type(self.function).__name__}.{method.__name__}({of})"

        return call_user(method, where, *arguments)

    def _keep(self, value: object) -> None:
        """Keep a value; one that a store would cut off is refused where there is no store too.

        The accumulator itself, which ``add`` may change, comes back as it is; others are copied.
        """
        if value is not self.kept:
            value = copy_value(value)
        self.kept = check_not_cut(value, self.function.accumulator, type(self.function).__name__)
