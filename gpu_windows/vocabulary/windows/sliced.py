"""Assigners of windows that are runs of slices: tumbling, sliding, cumulative.

Sizes, slides and offsets are in ticks; the ``of`` constructors take durations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from gpu_windows import rules
from gpu_windows.errors import InvalidWindowError
from gpu_windows.html_text import windows_svg
from gpu_windows.rules import TICKS, Grid, Units
from gpu_windows.vocabulary.options import Duration, show_ticks, ticks
from gpu_windows.vocabulary.windows.base import (
    PICTURED,
    AssignerContext,
    Row,
    TimeWindow,
    WindowAssigner,
)

#: Upper bound of the sliding windows that a row is in: Flink's limit.
MAX_WINDOWS_PER_ROW = 10_000_000


class SlicedAssigner(WindowAssigner):
    """Base of the assigners whose windows are runs of slices; see `gpu_windows.rules.Grid`."""

    def grid(self) -> Grid:
        """Return the slices of this assigner."""
        raise NotImplementedError

    @property
    def units(self) -> Units:
        """Units that the slices count."""
        return TICKS

    @property
    def longest_slide(self) -> int:
        """Upper bound of the ticks between the ends of consecutive windows."""
        return self.grid().slide

    @property
    def usable_ticks(self) -> tuple[int, int]:
        """First and last timestamp whose windows fit into int64, or are in the calendar."""
        grid, units = self.grid(), self.units
        first, last = rules.earliest_unit(grid, units), rules.latest_unit(grid, units)
        return int(rules.tick_of(first, units)), int(rules.tick_of(last + 1, units)) - 1

    def assign_windows(
        self, row: Row, timestamp: int, context: AssignerContext
    ) -> Sequence[TimeWindow]:
        """Return the windows that contain the timestamp, from the latest start to the earliest."""
        return self.assign(timestamp)

    @property
    def _time(self) -> str:
        return "event time" if self.is_event_time else "processing time"

    def assign(self, ts: int) -> list[TimeWindow]:
        """Return the windows of a row, from the latest start to the earliest.

        Cumulative windows share their start: there, from the longest to the shortest.
        """
        grid, units = self.grid(), self.units
        index = rules.slice_of(rules.unit_of(ts, units), grid)
        if rules.is_gap(index, grid):
            return []
        numbers = range(rules.last_window(index, grid), rules.first_window(index, grid) - 1, -1)
        bounds = [
            (rules.start_of(k, grid), rules.end_of(k, grid))
            for k in numbers
            if not rules.is_repeated(k, grid, units)
        ]
        return [TimeWindow(*(int(rules.tick_of(unit, units)) for unit in pair)) for pair in bounds]


@dataclass(frozen=True)
class TumblingEventTimeWindows(SlicedAssigner):
    """Windows of one size, without overlap (Flink: TumblingEventTimeWindows).

    Parameters
    ----------
    size, offset : int
        In ticks; `of` takes durations.

    Examples
    --------
    >>> clicks = gw.stream(pa.table({"ts": [0, 59_000_000, 60_000_000]}))
    >>> timed = clicks.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    >>> minutes = timed.window_all(gw.TumblingEventTimeWindows.of("1 minute"))
    >>> minutes.aggregate(n=gw.count())["n"].to_pylist()
    [2, 1]
    """

    size: int
    offset: int = 0

    @classmethod
    def of(cls, size: Duration, offset: Duration = "0 s") -> Self:
        """Build from durations; ``offset`` shifts the windows from the epoch.

        Parameters
        ----------
        size : str or datetime.timedelta
            Window length, such as ``"1 minute"``.
        offset : str or datetime.timedelta
            Shorter than ``size``, and may be negative.
        """
        return cls(ticks(size), ticks(offset))

    def __post_init__(self) -> None:
        check_positive("size", self.size)
        _check_offset(self.offset, "size", self.size)

    def grid(self) -> Grid:
        """Return one slice for each window."""
        return rules.sliding_grid(self.size, self.size, self.offset)

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        return f"tumbling {show_ticks(self.size)}{_show_offset(self.offset)}, {self._time}"


@dataclass(frozen=True)
class SlidingEventTimeWindows(SlicedAssigner):
    """Windows of one size that start every ``slide`` (Flink: SlidingEventTimeWindows).

    With ``slide > size`` there are gaps: a row in a gap is in no window and is counted.

    Parameters
    ----------
    size, slide, offset : int
        In ticks; `of` takes durations.

    Examples
    --------
    >>> clicks = gw.stream(pa.table({"ts": [0, 30_000_000]}))
    >>> timed = clicks.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    >>> windows = timed.window_all(gw.SlidingEventTimeWindows.of("1 minute", "30 seconds"))
    >>> windows.aggregate(n=gw.count())["n"].to_pylist()
    [1, 2, 1]
    """

    size: int
    slide: int
    offset: int = 0

    @classmethod
    def of(cls, size: Duration, slide: Duration, offset: Duration = "0 s") -> Self:
        """Build from durations; ``offset`` shifts the windows from the epoch.

        Parameters
        ----------
        size : str or datetime.timedelta
            Window length, such as ``"1 hour"``.
        slide : str or datetime.timedelta
            Interval between window starts.
        offset : str or datetime.timedelta
            Shorter than ``slide``, and may be negative.
        """
        return cls(ticks(size), ticks(slide), ticks(offset))

    def __post_init__(self) -> None:
        check_positive("size", self.size)
        check_positive("slide", self.slide)
        _check_offset(self.offset, "slide", self.slide)
        _check_span(self.size, self.slide)

    def grid(self) -> Grid:
        """Return one or two slices for each slide."""
        return rules.sliding_grid(self.size, self.slide, self.offset)

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        gaps = ", with gaps" if self.slide > self.size else ""
        sizes = f"{show_ticks(self.size)} every {show_ticks(self.slide)}"
        return f"sliding {sizes}{_show_offset(self.offset)}{gaps}, {self._time}"


@dataclass(frozen=True)
class MultiLengthEventTimeWindows(SlicedAssigner):
    """Windows of several lengths that end together, every ``slide``: feature tables.

    A window is one of the longest length, and each aggregate is given over its last part of each
    length: ``n=gw.count()`` becomes ``n_1m``, ``n_5m`` and ``n_1h``. All lengths share the slices
    that rows are aggregated by. (Flink: a sliding window for each length.)

    Parameters
    ----------
    lengths : tuple of int
        In ticks; `of` takes durations.
    slide, offset : int
        In ticks.

    Examples
    --------
    >>> clicks = gw.stream(pa.table({"ts": [0, 60_000_000]}))
    >>> timed = clicks.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    >>> windows = timed.window_all(gw.MultiLengthEventTimeWindows.of("1 minute", "2 minutes"))
    >>> windows.aggregate(n=gw.count()).select(["n_1m", "n_2m"]).to_pylist()
    [{'n_1m': 1, 'n_2m': 1}, {'n_1m': 1, 'n_2m': 2}, {'n_1m': 0, 'n_2m': 1}]
    """

    lengths: tuple[int, ...]
    slide: int
    offset: int = 0

    @classmethod
    def of(
        cls, *lengths: Duration, slide: Duration | None = None, offset: Duration = "0 s"
    ) -> Self:
        """Build from durations.

        Parameters
        ----------
        *lengths : str or datetime.timedelta
            Multiples of ``slide``.
        slide : str or datetime.timedelta, optional
            How often windows end; default: the shortest length.
        offset : str or datetime.timedelta
            Shifts the windows from the epoch.

        Raises
        ------
        InvalidWindowError
            If there is no length, one comes twice, or one is not a multiple of ``slide``.
        """
        sizes = tuple(map(ticks, lengths))
        every = min(sizes, default=0) if slide is None else ticks(slide)
        return cls(sizes, every, ticks(offset))

    def __post_init__(self) -> None:
        if not self.lengths:
            raise InvalidWindowError("windows of several lengths need one at least", value=())
        check_positive("slide", self.slide)
        for length in self.lengths:
            check_positive("a length", length)
            if length % self.slide:
                rule = "every length must be a multiple of the slide"
                value = f"{show_ticks(length)} and {show_ticks(self.slide)}"
                raise InvalidWindowError(rule, value=value)
        if len({*self.lengths}) < len(self.lengths):
            raise InvalidWindowError("lengths must differ", value=self._lengths_text)
        _check_span(max(self.lengths), self.slide)
        _check_offset(self.offset, "slide", self.slide)

    def grid(self) -> Grid:
        """Return one slice for each slide."""
        return rules.sliding_grid(max(self.lengths), self.slide, self.offset)

    @property
    def _lengths_text(self) -> str:
        return ", ".join(map(show_ticks, self.lengths))

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        every = f"every {show_ticks(self.slide)}{_show_offset(self.offset)}"
        return f"sliding {self._lengths_text} {every}, {self._time}"


@dataclass(frozen=True)
class CumulativeEventTimeWindows(SlicedAssigner):
    """Windows that share a start and grow by ``step`` up to ``max_size`` (Flink SQL: CUMULATE).

    Parameters
    ----------
    max_size, step, offset : int
        In ticks; `of` takes durations.

    Examples
    --------
    >>> clicks = gw.stream(pa.table({"ts": [0, 45_000_000]}))
    >>> timed = clicks.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    >>> windows = timed.window_all(gw.CumulativeEventTimeWindows.of("1 minute", "20 seconds"))
    >>> windows.aggregate(n=gw.count())["n"].to_pylist()
    [1, 1, 2]
    """

    max_size: int
    step: int
    offset: int = 0

    @classmethod
    def of(cls, max_size: Duration, step: Duration, offset: Duration = "0 s") -> Self:
        """Build from durations; ``offset`` shifts the windows from the epoch.

        Parameters
        ----------
        max_size : str or datetime.timedelta
            Length of the longest window; a multiple of ``step``.
        step : str or datetime.timedelta
            Length of the shortest window, and growth from one window to the next.
        offset : str or datetime.timedelta
            Shorter than ``max_size``, and may be negative.
        """
        return cls(ticks(max_size), ticks(step), ticks(offset))

    def __post_init__(self) -> None:
        check_positive("max_size", self.max_size)
        check_positive("step", self.step)
        if self.max_size % self.step != 0:
            rule = "max_size must be a multiple of step"
            value = f"{show_ticks(self.max_size)} and {show_ticks(self.step)}"
            raise InvalidWindowError(rule, value=value)
        _check_offset(self.offset, "max_size", self.max_size)

    def picture(self) -> str:
        """Return an SVG of the windows that share a start."""
        steps = min(self.max_size // self.step, PICTURED)
        return windows_svg((0, n * self.step) for n in range(1, steps + 1))

    def grid(self) -> Grid:
        """Return one slice for each step."""
        return rules.cumulative_grid(self.max_size, self.step, self.offset)

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        sizes = f"up to {show_ticks(self.max_size)} by {show_ticks(self.step)}"
        return f"cumulative {sizes}{_show_offset(self.offset)}, {self._time}"


def check_positive(name: str, value: int) -> None:
    """Refuse a duration that is not positive, too long for window arithmetic, or not in ticks."""
    if not hasattr(value, "__index__"):
        rule = f"{name} must be in ticks here; of durations make windows by .of() or .with_gap()"
        raise InvalidWindowError(rule, value=repr(value))
    if not 0 < value <= rules.LONG_MAX // 8:
        rule = f"{name} must be positive" if value <= 0 else f"{name} is too long"
        raise InvalidWindowError(rule, value=show_ticks(value))


def _check_span(size: int, slide: int) -> None:
    if size // slide > MAX_WINDOWS_PER_ROW:
        rule = f"size / slide, the windows of a row, must be at most {MAX_WINDOWS_PER_ROW:,}"
        raise InvalidWindowError(rule, value=f"{size // slide:,}")


def _check_offset(offset: int, name: str, limit: int) -> None:
    if abs(offset) >= limit:
        rule = (
            f"the offset must be smaller than the {name} ({show_ticks(limit)}) on either side of 0"
        )
        raise InvalidWindowError(rule, value=show_ticks(offset))


def _show_offset(offset: int) -> str:
    return f", offset {show_ticks(offset)}" if offset else ""
