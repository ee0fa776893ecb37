"""Deltas: how far apart two rows are, for DeltaTrigger and DeltaEvictor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

from gpu_windows.errors import QueryError

#: The built-in deltas; kernels know them.
DeltaKind = Literal["old_minus_new", "new_minus_old", "abs_diff", "user"]
#: Compared values: one, or those of several columns.
Point = float | tuple[float, ...]


@dataclass(frozen=True)
class Delta:
    """A distance between the values of two rows in numeric columns (Flink: DeltaFunction).

    A trigger compares the row that fired last (old) with the current row (new), an evictor a row of
    the window (old) with the window's last row (new).

    Parameters
    ----------
    column : str
        A column of numbers; a null counts as NaN, whose distance exceeds no threshold.
    kind : {"old_minus_new", "new_minus_old", "abs_diff", "user"}
        How two values are compared; only "user" runs in Python.
    function : callable, optional
        ``function(old, new)``, for the kind "user": row at a time, in Python. It takes two floats,
        or two tuples of floats with several columns.
    others : tuple of str
        More columns, for the kind "user".

    Examples
    --------
    >>> import math
    >>> fallen = gw.Delta.old_minus_new("price")
    >>> moved = gw.Delta.of(["x", "y"], math.dist)
    >>> fallen.describe(), moved.describe()
    ('old price - new price', 'dist(old (x, y), new (x, y))')
    """

    column: str
    kind: DeltaKind
    function: Callable[[Any, Any], float] | None = None
    others: tuple[str, ...] = ()

    @classmethod
    def old_minus_new(cls, column: str) -> Self:
        """How much the value has fallen.

        Parameters
        ----------
        column : str
            A numeric column.
        """
        return cls(column, "old_minus_new")

    @classmethod
    def new_minus_old(cls, column: str) -> Self:
        """How much the value has risen.

        Parameters
        ----------
        column : str
            A numeric column.
        """
        return cls(column, "new_minus_old")

    @classmethod
    def abs_diff(cls, column: str) -> Self:
        """How much the value has changed.

        Parameters
        ----------
        column : str
            A numeric column.
        """
        return cls(column, "abs_diff")

    @classmethod
    def of(cls, columns: str | Sequence[str], function: Callable[[Any, Any], float]) -> Self:
        """Use a function of your own, of one column or of several.

        ``Delta.of(["x", "y"], math.dist)`` is the distance of two rows in a plane. The function is
        given floats for a column by its name, and tuples of floats for a list of columns.

        Parameters
        ----------
        columns : str or sequence of str
            Numeric columns.
        function : callable
            ``function(old, new)``, which returns a float.

        Raises
        ------
        QueryError
            If there is no column, or the function is not callable.
        """
        several = (columns,) if isinstance(columns, str) else columns
        is_list = isinstance(several, list | tuple) and len(several) > 0
        if not is_list or not all(isinstance(column, str) for column in several):
            rule = "a delta is of a column by its name, or of a list of columns"
            raise QueryError(rule, value=repr(columns))
        if len(several) == 1 and not isinstance(columns, str):
            rule = "a delta of one column is of its name, and its function sees floats"
            raise QueryError(rule, value=repr(columns))
        if not callable(function):
            raise QueryError("a delta is a function of old and new", value=repr(function))
        return cls(several[0], "user", function, tuple(several[1:]))

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that are compared."""
        return (self.column, *self.others)

    def value(self, row: Mapping[str, object]) -> Point:
        """Return the values of a row that are compared."""
        values = tuple(map(_number, map(row.__getitem__, self.columns)))
        return values if self.others else values[0]

    def between(self, old: Any, new: Any) -> float:
        """Return the distance of two `value`; those of several columns may come as lists."""
        distance: float
        if self.function is not None:
            pair = map(tuple, (old, new)) if self.others else (old, new)
            distance = self.function(*pair)
            return distance
        rise = new - old
        distance = {"old_minus_new": -rise, "new_minus_old": rise}.get(self.kind, abs(rise))
        return distance

    def describe(self) -> str:
        """Return a description for ``explain()``."""
        descriptions = {
            "old_minus_new": f"old {self.column} - new {self.column}",
            "new_minus_old": f"new {self.column} - old {self.column}",
            "abs_diff": f"the change of {self.column}",
        }
        name = getattr(self.function, "__name__", "function")
        names = ", ".join(self.columns)
        names = f"({names})" if self.others else names
        return descriptions.get(self.kind, f"{name}(old {names}, new {names})")


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)
