"""Deltas: how far apart two rows are, for DeltaTrigger and DeltaEvictor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Self

#: The built-in deltas; kernels know them.
DeltaKind = Literal["old_minus_new", "new_minus_old", "abs_diff", "user"]


@dataclass(frozen=True)
class Delta:
    """A distance between two values of a numeric column (Flink: DeltaFunction).

    A trigger compares the row that fired last (old) with the row at hand (new), an evictor a row
    of the window (old) with the window's last row (new).

    Parameters
    ----------
    column : str
        A column of numbers; a null counts as NaN, which is farther than nothing.
    kind : {"old_minus_new", "new_minus_old", "abs_diff", "user"}
        How two values are compared; only "user" runs in Python.
    function : callable, optional
        ``function(old, new)`` of two floats, for the kind "user": row at a time, in Python.
    """

    column: str
    kind: DeltaKind
    function: Callable[[float, float], float] | None = None

    @classmethod
    def old_minus_new(cls, column: str) -> Self:
        """How much the value has fallen."""
        return cls(column, "old_minus_new")

    @classmethod
    def new_minus_old(cls, column: str) -> Self:
        """How much the value has risen."""
        return cls(column, "new_minus_old")

    @classmethod
    def abs_diff(cls, column: str) -> Self:
        """How much the value has changed."""
        return cls(column, "abs_diff")

    @classmethod
    def of(cls, column: str, function: Callable[[float, float], float]) -> Self:
        """Ask a function of your own."""
        return cls(column, "user", function)

    def value(self, row: Mapping[str, object]) -> float:
        """Return what of a row is compared."""
        value = row[self.column]
        return float("nan") if value is None else float(value)  # type: ignore[arg-type]

    def between(self, old: float, new: float) -> float:
        """Return the distance."""
        if self.function is not None:
            return self.function(old, new)
        if self.kind == "old_minus_new":
            return old - new
        return new - old if self.kind == "new_minus_old" else abs(old - new)

    def describe(self) -> str:
        """Return it in words."""
        words = {
            "old_minus_new": f"old {self.column} - new {self.column}",
            "new_minus_old": f"new {self.column} - old {self.column}",
            "abs_diff": f"the change of {self.column}",
        }
        name = getattr(self.function, "__name__", "function")
        return words.get(self.kind, f"{name}(old {self.column}, new {self.column})")
