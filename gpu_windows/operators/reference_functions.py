"""What a window holds of its rows, and what the window function makes of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from gpu_windows.errors import QueryError
from gpu_windows.functions import Aggregates, Collect, Reduce, Row, WindowFunction
from gpu_windows.operators.reference_aggregates import ACCUMULATORS


class Contents(ABC):
    """The contents of one key and window (Flink: the window state)."""

    @abstractmethod
    def add(self, row: Row) -> None:
        """Take a row, in order of arrival."""

    @abstractmethod
    def results(self) -> Sequence[object]:
        """Return the values of the result columns; more rows may come after it."""


class Accumulators(Contents):
    """The accumulators of some aggregates; the rows themselves are not kept."""

    def __init__(self, function: Aggregates) -> None:
        self._parts = [ACCUMULATORS[b.aggregate.function](b) for b in function.bound]

    def add(self, row: Row) -> None:
        """Add the row to every aggregate."""
        for part in self._parts:
            part.add(row)

    def results(self) -> Sequence[object]:
        """Return the aggregates."""
        return [part.result() for part in self._parts]


class Elements(Contents):
    """All rows, in order of arrival."""

    def __init__(self, function: Collect) -> None:
        self._lists: dict[str, list[object]] = {name: [] for name in function.columns}

    def add(self, row: Row) -> None:
        """Append the row."""
        for name, values in self._lists.items():
            values.append(row[name])

    def results(self) -> Sequence[object]:
        """Return a list for each column."""
        return [list(values) for values in self._lists.values()]


class Reduced(Contents):
    """The one row that all rows so far were reduced to."""

    def __init__(self, function: Reduce) -> None:
        self._function = function
        self._row: Row | None = None

    def add(self, row: Row) -> None:
        """Reduce what is there and the row; the first row is taken as it is."""
        if self._row is None:
            self._row = row
            return
        self._row = self._function.function(self._row, row)
        if set(self._row) != set(self._function.columns):
            rule = f"a reduce function must return exactly {', '.join(self._function.columns)}"
            raise QueryError(rule, value=", ".join(self._row))

    def results(self) -> Sequence[object]:
        """Return the columns of the row."""
        assert self._row is not None, "contents are made when their first row comes"
        return [self._row[name] for name in self._function.columns]


def contents_of(function: WindowFunction) -> Callable[[], Contents]:
    """Return the maker of empty contents for a window function."""
    match function:
        case Aggregates():
            return lambda: Accumulators(function)
        case Collect():
            return lambda: Elements(function)
        case Reduce():
            return lambda: Reduced(function)
