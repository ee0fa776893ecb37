"""The first rows of every window in an order of their columns (SQL: window top-N)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from gpu_windows.column_types.logical import is_comparable
from gpu_windows.errors import ColumnNotFoundError, ColumnTypeError, QueryError
from gpu_windows.functions.vectorised import BatchFunction
from gpu_windows.vocabulary.options import is_whole


def describe_order(by: Iterable[tuple[str, bool]]) -> str:
    """Describe an order: names of columns, and whether it descends."""
    return ", ".join(f"{name}{' descending' if descends else ''}" for name, descends in by)


@dataclass(frozen=True)
class Top(BatchFunction):
    """The first rows of a window, numbered from 1; of equal rows the earlier is first.

    Parameters
    ----------
    count : int
        How many rows at most.
    by : tuple of (int, bool)
        The order: indices in ``columns``, the most significant first, and whether it descends.
        Nulls are less than any value.
    columns : tuple of str
        Columns of the results, then the others that rows are ordered by.
    output : pyarrow.Schema
        Columns of the results; the last one is the number.
    """

    count: int
    by: tuple[tuple[int, bool], ...]
    columns: tuple[str, ...]
    output: pa.Schema
    why_rows = (
        "top needs rows; where windows fire once, without an evictor, those are left out that "
        "cannot be among the first"
    )

    @property
    def compared_columns(self) -> tuple[str, ...]:
        """Columns that rows are ordered by."""
        return tuple(self.columns[i] for i, _ in self.by)

    @property
    def carried_count(self) -> int:
        """How many of `columns` the results carry."""
        return len(self.output) - 1

    @property
    def ordered_parts(self) -> Iterator[str]:
        """Rows that are equal in all columns of the order."""
        yield "which of equal rows are among the top"

    @property
    def number(self) -> str:
        """The column of the number."""
        return str(self.output.names[-1])

    def describe(self) -> str:
        """Return a description for ``explain()``."""
        order = describe_order((self.columns[i], descending) for i, descending in self.by)
        return f"top {self.count} by {order}({', '.join(self.columns[: self.carried_count])})"


@dataclass(frozen=True)
class Ranking:
    """Keeps the first keys of every window, or window and category, by their results.

    Keys are numbered from 1. Of equal results those of lesser keys are first.

    Parameters
    ----------
    count : int
        How many rows at most.
    by : tuple of (str, bool)
        The order: keys or results by the user's names, and whether it descends.
    number : str
        The result column of the number.
    per : tuple of str
        Keys or results that are the category of a result.
    """

    count: int
    by: tuple[tuple[str, bool], ...]
    number: str
    per: tuple[str, ...] = ()

    def describe(self) -> str:
        """Return a description for ``explain()``."""
        order = describe_order(self.by)
        of = ", ".join(("a window", *self.per))
        return f"the first {self.count} keys of {of} by {order}"

    def check(self, results: pa.Schema) -> None:
        """Check it against the results: the keys and what the function gives.

        Raises
        ------
        ColumnNotFoundError, ColumnTypeError
            If a name is not that of a column, or rows cannot be ordered by it.
        """
        names = [*(name for name, _ in self.by), *self.per]
        for name in names:
            if name not in results.names:
                does = "has categories (per)" if name in self.per else "orders"
                rule = f"top_keys {does} by keys and results: {', '.join(results.names)}"
                raise ColumnNotFoundError(rule, value=str(name))
        check_order(results, names)


def check_count(count: Any) -> int:
    """Return a number of rows; raise `QueryError` unless it is an integer of at least 1."""
    if not is_whole(count) or count < 1:
        raise QueryError("top takes the number of rows, an integer of at least 1", value=count)
    return int(count)


def directions(descending: Any, columns: int) -> tuple[bool, ...]:
    """Return for each of the columns of an order whether it descends.

    Raises
    ------
    QueryError
        Unless ``descending`` is a bool, or one for each column.
    """
    if columns == 0:
        raise QueryError("by is at least one column", value="none")
    each = descending if isinstance(descending, list | tuple) else [descending] * columns
    if len(each) != columns or not all(isinstance(one, bool) for one in each):
        rule = f"descending is a bool, or one for each of {columns} columns of by"
        raise QueryError(rule, value=descending)
    return tuple(each)


def check_order(schema: pa.Schema, columns: Sequence[str]) -> None:
    """Raise `ColumnTypeError` unless rows can be ordered by these columns."""
    for name in columns:
        dtype = schema.field(name).type
        if not is_comparable(dtype):
            rule = "rows are ordered by numbers, booleans, dates, timestamps and texts"
            raise ColumnTypeError(rule, value=str(dtype), column=name)


def check_number(name: Any, what: str = "number") -> str:
    """Return the name of a result column, such as that of numbers.

    Raises
    ------
    QueryError
        If it is not a string, or empty; ``what`` names the parameter.
    """
    if not isinstance(name, str) or not name:
        raise QueryError(f"{what} is the name of a result column", value=repr(name))
    return name
