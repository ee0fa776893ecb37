"""Triggers that depend on the rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

import pyarrow as pa

from gpu_windows.errors import InvalidTriggerError
from gpu_windows.vocabulary.deltas import Delta
from gpu_windows.vocabulary.options import is_whole
from gpu_windows.vocabulary.triggers.base import (
    AnyWindow,
    Row,
    Trigger,
    TriggerContext,
    TriggerResult,
)


@dataclass(frozen=True)
class CountTrigger(Trigger):
    """Fires at each ``count``-th row of a window, never at its end (Flink: CountTrigger).

    Parameters
    ----------
    limit : int
        Number of rows, at least 1.

    Examples
    --------
    >>> users = gw.stream(pa.table({"user": ["ann"] * 5})).key_by("user")
    >>> twos = users.window(gw.GlobalWindows.create()).trigger(gw.CountTrigger.of(2))
    >>> twos.aggregate(n=gw.count())["n"].to_pylist()
    [2, 4]
    """

    limit: int

    state: ClassVar = {"count": pa.int64()}

    @classmethod
    def of(cls, count: int) -> Self:
        """Fire at each ``count``-th row.

        Parameters
        ----------
        count : int
            At least 1.
        """
        return cls(count)

    def __post_init__(self) -> None:
        if not is_whole(self.limit) or self.limit <= 0:
            rule = "the count of a CountTrigger must be a positive integer"
            raise InvalidTriggerError(rule, value=repr(self.limit))

    def on_element(
        self, row: Row, timestamp: int, window: AnyWindow, context: TriggerContext
    ) -> TriggerResult:
        """Count the row; fire and start again at the n-th."""
        count = context.get("count", 0) + 1
        if count < self.limit:
            context.put("count", count)
            return TriggerResult.CONTINUE
        context.remove("count")
        return TriggerResult.FIRE

    def can_merge(self) -> bool:
        """Return True."""
        return True

    def on_merge(self, window: AnyWindow, context: TriggerContext) -> None:
        """Add the counts up; a merge alone never fires."""
        context.merge("count", int.__add__)

    def clear(self, window: AnyWindow, context: TriggerContext) -> None:
        """Remove the count."""
        context.remove("count")

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        return f"every {self.limit} rows"


@dataclass(frozen=True)
class DeltaTrigger(Trigger):
    """Fires at a row that is more than ``threshold`` away from the one that fired last.

    The first row of a window only sets the reference. Never fires at the window's end (Flink:
    DeltaTrigger).

    Parameters
    ----------
    threshold : float
        Fires when the distance exceeds it.
    delta : Delta
        Distance between two rows.

    Examples
    --------
    >>> rooms = gw.stream(pa.table({"room": ["a"] * 4, "temp": [20.0, 20.5, 22.0, 22.5]}))
    >>> whole = rooms.key_by("room").window(gw.GlobalWindows.create())
    >>> jumps = whole.trigger(gw.DeltaTrigger.of(1.0, gw.Delta.abs_diff("temp")))
    >>> jumps.aggregate(temp=gw.last("temp"))["temp"].to_pylist()
    [22.0]
    """

    threshold: float
    delta: Delta

    @property
    def state(self) -> Mapping[str, pa.DataType]:
        """The values of the row that fired last."""
        return {"reference": pa.list_(pa.float64()) if self.delta.others else pa.float64()}

    @classmethod
    def of(cls, threshold: float, delta: Delta) -> Self:
        """Fire where ``delta(reference, row) > threshold``; see `Delta`.

        Parameters
        ----------
        threshold : float
            Limit of the distance.
        delta : Delta
            Distance between two rows.
        """
        return cls(threshold, delta)

    def __post_init__(self) -> None:
        if isinstance(self.threshold, bool) or not isinstance(self.threshold, int | float):
            rule = "the threshold of a DeltaTrigger must be a number"
            raise InvalidTriggerError(rule, value=repr(self.threshold))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are compared."""
        return self.delta.columns

    def on_element(
        self, row: Row, timestamp: int, window: AnyWindow, context: TriggerContext
    ) -> TriggerResult:
        """Compare with the reference; a row that fires becomes the reference."""
        value, reference = self.delta.value(row), context.get("reference")
        if reference is None:
            context.put("reference", value)
            return TriggerResult.CONTINUE
        if not self.delta.between(reference, value) > self.threshold:
            return TriggerResult.CONTINUE
        context.put("reference", value)
        return TriggerResult.FIRE

    def clear(self, window: AnyWindow, context: TriggerContext) -> None:
        """Remove the reference."""
        context.remove("reference")

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        return f"when {self.delta.describe()} exceeds {self.threshold:g}"
