"""Window assigners: which windows a row belongs to. Names and rules are Flink's.

Sizes, slides and offsets are held in ticks; the ``of`` constructors take durations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self, runtime_checkable

from gpu_windows import rules
from gpu_windows.errors import InvalidWindowError
from gpu_windows.options import Duration, show_ticks, ticks
from gpu_windows.rules import Grid

#: Most sliding windows that a row may be in: Flink's limit.
MOST_WINDOWS = 10_000_000


class TimeWindow(NamedTuple):
    """The window ``[start, end)``, in ticks."""

    start: int
    end: int

    @property
    def max_timestamp(self) -> int:
        """The last tick that belongs to the window."""
        return self.end - 1


@runtime_checkable
class WindowAssigner(Protocol):
    """Puts a row into windows, by its timestamp alone."""

    def assign(self, ts: int) -> list[TimeWindow]:
        """Return the windows of a row, from the latest start to the earliest."""

    def describe(self) -> str:
        """Return one line for ``explain()``."""


class SlicedAssigner:
    """Base of the assigners whose windows are runs of slices; see `gpu_windows.rules.Grid`."""

    def grid(self) -> Grid:
        """Return the slices of this assigner."""
        raise NotImplementedError

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        raise NotImplementedError

    def assign(self, ts: int) -> list[TimeWindow]:
        """Return the windows of a row, from the latest start to the earliest.

        Cumulative windows share their start: there, from the longest to the shortest.
        """
        grid = self.grid()
        index = rules.slice_of(ts, grid)
        if rules.is_gap(index, grid):
            return []
        numbers = range(rules.last_window(index, grid), rules.first_window(index, grid) - 1, -1)
        return [TimeWindow(rules.start_of(k, grid), rules.end_of(k, grid)) for k in numbers]


@dataclass(frozen=True)
class TumblingEventTimeWindows(SlicedAssigner):
    """Windows of one size, without overlap (Flink: TumblingEventTimeWindows)."""

    size: int
    offset: int = 0

    @classmethod
    def of(cls, size: Duration, offset: Duration = "0 s") -> Self:
        """Build from durations; ``offset`` shifts the windows from the epoch."""
        return cls(ticks(size), ticks(offset))

    def __post_init__(self) -> None:
        _check_positive("size", self.size)
        _check_offset(self.offset, "size", self.size)

    def grid(self) -> Grid:
        """Return one slice a window."""
        return rules.sliding_grid(self.size, self.size, self.offset)

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        return f"tumbling {show_ticks(self.size)}{_show_offset(self.offset)}, event time"


@dataclass(frozen=True)
class SlidingEventTimeWindows(SlicedAssigner):
    """Windows of one size that start every ``slide`` (Flink: SlidingEventTimeWindows).

    With ``slide > size`` there are gaps: a row in a gap is in no window and is counted.
    """

    size: int
    slide: int
    offset: int = 0

    @classmethod
    def of(cls, size: Duration, slide: Duration, offset: Duration = "0 s") -> Self:
        """Build from durations; ``offset`` shifts the windows from the epoch."""
        return cls(ticks(size), ticks(slide), ticks(offset))

    def __post_init__(self) -> None:
        _check_positive("size", self.size)
        _check_positive("slide", self.slide)
        _check_offset(self.offset, "slide", self.slide)
        if self.size // self.slide > MOST_WINDOWS:
            rule = f"size / slide, the windows of a row, must be at most {MOST_WINDOWS:,}"
            raise InvalidWindowError(rule, value=f"{self.size // self.slide:,}")

    def grid(self) -> Grid:
        """Return one or two slices a slide."""
        return rules.sliding_grid(self.size, self.slide, self.offset)

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        gaps = ", with gaps" if self.slide > self.size else ""
        sizes = f"{show_ticks(self.size)} every {show_ticks(self.slide)}"
        return f"sliding {sizes}{_show_offset(self.offset)}{gaps}, event time"


@dataclass(frozen=True)
class CumulativeEventTimeWindows(SlicedAssigner):
    """Windows that share a start and grow by ``step`` up to ``max_size`` (Flink SQL: CUMULATE)."""

    max_size: int
    step: int
    offset: int = 0

    @classmethod
    def of(cls, max_size: Duration, step: Duration, offset: Duration = "0 s") -> Self:
        """Build from durations; ``offset`` shifts the windows from the epoch."""
        return cls(ticks(max_size), ticks(step), ticks(offset))

    def __post_init__(self) -> None:
        _check_positive("max_size", self.max_size)
        _check_positive("step", self.step)
        if self.max_size % self.step != 0:
            rule = "max_size must be a multiple of step"
            value = f"{show_ticks(self.max_size)} and {show_ticks(self.step)}"
            raise InvalidWindowError(rule, value=value)
        _check_offset(self.offset, "max_size", self.max_size)

    def grid(self) -> Grid:
        """Return one slice a step."""
        return rules.cumulative_grid(self.max_size, self.step, self.offset)

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        sizes = f"up to {show_ticks(self.max_size)} by {show_ticks(self.step)}"
        return f"cumulative {sizes}{_show_offset(self.offset)}, event time"


def _check_positive(name: str, value: int) -> None:
    if not 0 < value <= rules.LONG_MAX // 8:
        rule = f"{name} must be positive" if value <= 0 else f"{name} is too long"
        raise InvalidWindowError(rule, value=show_ticks(value))


def _check_offset(offset: int, name: str, limit: int) -> None:
    if abs(offset) >= limit:
        rule = (
            f"the offset must be smaller than the {name} ({show_ticks(limit)}) on either side of 0"
        )
        raise InvalidWindowError(rule, value=show_ticks(offset))


def _show_offset(offset: int) -> str:
    return f", offset {show_ticks(offset)}" if offset else ""
