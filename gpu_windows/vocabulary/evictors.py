"""Evictors: which rows of a window are dropped, before or after its function is called.

The rows that an evictor keeps replace the contents of the window. With an evictor, all rows of a
window are stored until the window is dropped; without one, aggregates store accumulators only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

from gpu_windows.arguments import check_factories
from gpu_windows.errors import InvalidEvictorError
from gpu_windows.rules import LONG_MIN
from gpu_windows.vocabulary.deltas import Delta
from gpu_windows.vocabulary.options import Duration, is_whole, show_ticks, ticks
from gpu_windows.vocabulary.rich_functions import FunctionContext, RichFunction
from gpu_windows.vocabulary.triggers.base import AnyWindow


class Element(NamedTuple):
    """A row of a window.

    Attributes
    ----------
    row : mapping
        The columns `Evictor.columns`.
    timestamp : int
        In ticks; -2**63 for a row without a time.
    place : int
        Its index in the window's list.

    Examples
    --------
    >>> gw.typing.Element({"page": "home"}, 0, 0).row["page"]
    'home'
    """

    row: Mapping[str, object]
    timestamp: int
    place: int


class EvictorContext(FunctionContext, Protocol):
    """The context of an evictor. Times in ticks.

    Examples
    --------
    An evictor that counts what it drops:

    >>> class DropFirst(gw.functions.Evictor):
    ...     def evict_before(self, elements, window, context):
    ...         context.count("dropped")
    ...         return elements[1:]
    >>> users = gw.stream(pa.table({"user": ["ann"] * 3})).key_by("user")
    >>> threes = users.window(gw.GlobalWindows.create()).trigger(gw.CountTrigger.of(3))
    >>> outputs = threes.evictor(DropFirst()).with_outputs().aggregate(n=gw.count())
    >>> outputs.result()["n"].to_pylist(), outputs.metrics()["user"].to_pylist()
    ([2], [[('dropped', 1)]])
    """

    @property
    def current_watermark(self) -> int:
        """The watermark; -2**63 before the first one."""

    @property
    def current_processing_time(self) -> int:
        """Processing time, in ticks."""


class Evictor(RichFunction):
    """Drops rows of a window (Flink: Evictor). Your own subclasses run row at a time.

    Examples
    --------
    >>> class KeepPaid(gw.functions.Evictor):
    ...     columns = ("paid",)
    ...
    ...     def evict_before(self, elements, window, context):
    ...         return [element for element in elements if element.row["paid"]]
    >>> sales = gw.stream(pa.table({"shop": ["a"] * 3, "paid": [True, False, True]}))
    >>> threes = (
    ...     sales.key_by("shop").window(gw.GlobalWindows.create()).trigger(gw.CountTrigger.of(3))
    ... )
    >>> threes.evictor(KeepPaid()).aggregate(n=gw.count())["n"].to_pylist()
    [2]
    """

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the rows that it reads."""
        return ()

    def evict_before(
        self, elements: Sequence[Element], window: AnyWindow, context: EvictorContext
    ) -> Sequence[Element]:
        """Return the rows to keep, in their order, before the window function is called."""
        return elements

    def evict_after(
        self, elements: Sequence[Element], window: AnyWindow, context: EvictorContext
    ) -> Sequence[Element]:
        """Return the rows to keep, in their order, after the window function was called."""
        return elements

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        return type(self).__name__


@dataclass(frozen=True)
class _BuiltIn(Evictor):
    """A built-in evictor, which runs before or after the window function."""

    evict_after_function: bool

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        check_factories(cls)

    def keep(self, elements: Sequence[Element]) -> Sequence[Element]:
        """Return the rows to keep."""
        raise NotImplementedError

    def evict_before(
        self, elements: Sequence[Element], window: AnyWindow, context: EvictorContext
    ) -> Sequence[Element]:
        """Evict, unless that is done afterwards."""
        return elements if self.evict_after_function else self.keep(elements)

    def evict_after(
        self, elements: Sequence[Element], window: AnyWindow, context: EvictorContext
    ) -> Sequence[Element]:
        """Evict, unless that was done before."""
        return self.keep(elements) if self.evict_after_function else elements

    def _when(self) -> str:
        return "after" if self.evict_after_function else "before"


@dataclass(frozen=True)
class CountEvictor(_BuiltIn):
    """Keeps the last ``limit`` rows in order of arrival (Flink: CountEvictor).

    Parameters
    ----------
    evict_after_function : bool
        Whether to evict after the window function is called, not before.
    limit : int
        Number of rows to keep.

    Examples
    --------
    >>> users = gw.stream(pa.table({"user": ["ann"] * 4, "page": ["a", "b", "c", "d"]})).key_by(
    ...     "user"
    ... )
    >>> whole = users.window(gw.GlobalWindows.create()).trigger(gw.CountTrigger.of(2))
    >>> whole.evictor(gw.CountEvictor.of(3)).collect_lists("page")["page"].to_pylist()
    [['a', 'b'], ['b', 'c', 'd']]
    """

    limit: int

    @classmethod
    def of(cls, count: int, *, evict_after: bool = False) -> Self:
        """Keep the last ``count`` rows.

        Parameters
        ----------
        count : int
            Not negative.
        evict_after : bool
            Whether to evict after the window function is called, not before.
        """
        return cls(evict_after, count)

    def __post_init__(self) -> None:
        if not is_whole(self.limit) or self.limit < 0:
            rule = "the count of a CountEvictor must be an integer that is not negative"
            raise InvalidEvictorError(rule, value=repr(self.limit))

    def keep(self, elements: Sequence[Element]) -> Sequence[Element]:
        """Return the last rows."""
        return elements[max(len(elements) - self.limit, 0) :]

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        return f"the last {self.limit} rows stay, {self._when()} the function"


@dataclass(frozen=True)
class TimeEvictor(_BuiltIn):
    """Keeps the rows less than ``size`` older than the window's newest one (Flink: TimeEvictor).

    If the first row of a window has no time, all rows stay, as in Flink; otherwise a row without
    one is older than all others (Flink fails).

    Parameters
    ----------
    evict_after_function : bool
        Whether to evict after the window function is called, not before.
    size : int
        In ticks; `of` takes a duration.

    Examples
    --------
    >>> clicks = gw.stream(pa.table({"user": ["ann"] * 3, "ts": [0, 5_000_000, 14_000_000]}))
    >>> timed = clicks.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    >>> minutes = timed.key_by("user").window(gw.TumblingEventTimeWindows.of("1 minute"))
    >>> latest = minutes.evictor(gw.TimeEvictor.of("10 seconds"))
    >>> latest.aggregate(n=gw.count())["n"].to_pylist()
    [2]
    """

    size: int

    @classmethod
    def of(cls, size: Duration, *, evict_after: bool = False) -> Self:
        """Keep the rows of the last ``size``.

        Parameters
        ----------
        size : str or datetime.timedelta
            Not negative.
        evict_after : bool
            Whether to evict after the window function is called, not before.
        """
        return cls(evict_after, ticks(size))

    def __post_init__(self) -> None:
        if self.size < 0:
            rule = "the size of a TimeEvictor must not be negative"
            raise InvalidEvictorError(rule, value=show_ticks(self.size))

    def keep(self, elements: Sequence[Element]) -> Sequence[Element]:
        """Return the rows of the last `size` before the newest one."""
        if not elements or elements[0].timestamp == LONG_MIN:
            return elements
        cutoff = max(element.timestamp for element in elements) - self.size
        return [element for element in elements if element.timestamp > cutoff]

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        return f"rows of the last {show_ticks(self.size)} stay, {self._when()} the function"


@dataclass(frozen=True)
class DeltaEvictor(_BuiltIn):
    """Drops rows that are ``threshold`` or more away from the last one (Flink: DeltaEvictor).

    Parameters
    ----------
    evict_after_function : bool
        Whether to evict after the window function is called, not before.
    threshold : float
        Rows at this distance or farther are dropped.
    delta : Delta
        Distance from the last row.

    Examples
    --------
    >>> rooms = gw.stream(pa.table({"room": ["a"] * 3, "temp": [15.0, 21.0, 22.0]}))
    >>> threes = (
    ...     rooms.key_by("room").window(gw.GlobalWindows.create()).trigger(gw.CountTrigger.of(3))
    ... )
    >>> near = threes.evictor(gw.DeltaEvictor.of(5.0, gw.Delta.abs_diff("temp")))
    >>> near.collect_lists("temp")["temp"].to_pylist()
    [[21.0, 22.0]]
    """

    threshold: float
    delta: Delta

    def __post_init__(self) -> None:
        if isinstance(self.threshold, bool) or not isinstance(self.threshold, int | float):
            rule = "the threshold of a DeltaEvictor must be a number"
            raise InvalidEvictorError(rule, value=repr(self.threshold))

    @classmethod
    def of(cls, threshold: float, delta: Delta, *, evict_after: bool = False) -> Self:
        """Drop where ``delta(row, last row) >= threshold``; see `Delta`.

        Parameters
        ----------
        threshold : float
            Limit of the distance.
        delta : Delta
            Distance between two rows.
        evict_after : bool
            Whether to evict after the window function is called, not before.
        """
        return cls(evict_after, threshold, delta)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are compared."""
        return self.delta.columns

    def keep(self, elements: Sequence[Element]) -> Sequence[Element]:
        """Return the rows near the last one."""
        if not elements:
            return elements
        last = self.delta.value(elements[-1].row)
        return [
            element
            for element in elements
            if not self.delta.between(self.delta.value(element.row), last) >= self.threshold
        ]

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        rule = f"{self.delta.describe()} >= {self.threshold:g} goes"
        return f"{rule}, {self._when()} the function"
