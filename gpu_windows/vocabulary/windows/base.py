"""The bases of windows and assigners, and conditions on rows. Times in ticks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from gpu_windows.arguments import check_factories
from gpu_windows.errors import QueryError
from gpu_windows.html_text import table_html, windows_svg
from gpu_windows.rules import INVALID_SESSION_GAP, LONG_MAX, LONG_MIN
from gpu_windows.vocabulary.triggers import EventTimeTrigger, ProcessingTimeTrigger, Trigger

#: Columns of a row: name to Python value.
Row = Mapping[str, object]

#: Windows of a picture.
PICTURED = 8


class TimeWindow(NamedTuple):
    """The window ``[start, end)``.

    Attributes
    ----------
    start, end : int
        In ticks (microseconds since 1970); ``end`` is after its last tick.

    Examples
    --------
    >>> gw.typing.TimeWindow(0, 60_000_000).max_timestamp
    59999999
    """

    start: int
    end: int

    @property
    def max_timestamp(self) -> int:
        """The last tick that belongs to the window."""
        return self.end - 1


class GlobalWindow(NamedTuple):
    """The one window of `GlobalWindows`; it has no bounds.

    Attributes
    ----------
    start, end : None
        It has none.

    Examples
    --------
    >>> gw.typing.GlobalWindow().max_timestamp == 2**63 - 1
    True
    """

    start: None = None
    end: None = None

    @property
    def max_timestamp(self) -> int:
        """The end of time."""
        return LONG_MAX


Window = TimeWindow | GlobalWindow


def window_of(start: int | None, end: int | None) -> Window:
    """Return the window of bounds in ticks, or the global one without bounds."""
    return GlobalWindow() if start is None or end is None else TimeWindow(start, end)


@dataclass(frozen=True)
class DurationCheck:
    """A duration in a column of the rows must be positive, and its window must fit int64.

    A row that breaks it is rejected, and is in no window; the query continues.

    Parameters
    ----------
    column : str
        Microseconds (an integer) or INTERVAL DAY TO SECOND.
    last : int
        The greatest tick at which its window may end.
    of_event_time : bool
        Whether its window begins at the time of the row; else at the current processing time.
    status : int
        The status of rows that break it: one of `gpu_windows.rules.REASONS`.
    """

    column: str
    last: int = LONG_MAX
    of_event_time: bool = True
    status: int = INVALID_SESSION_GAP


class AssignerContext(Protocol):
    """The context of an assigner."""

    @property
    def current_processing_time(self) -> int:
        """Processing time, in ticks."""


class WindowAssigner(ABC):
    """Puts rows into windows (Flink: WindowAssigner). Your own subclasses run row at a time.

    Examples
    --------
    >>> from gpu_windows.typing import TimeWindow
    >>> class Until(gw.functions.WindowAssigner):
    ...     columns = ("until",)
    ...
    ...     def assign_windows(self, row, timestamp, context):
    ...         return [TimeWindow(timestamp, row["until"])]
    >>> calls = gw.stream(pa.table({"user": ["ann", "ann"], "ts": [0, 0], "until": [5, 9]}))
    >>> timed = calls.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    >>> timed.key_by("user").window(Until()).aggregate(n=gw.count())["n"].to_pylist()
    [1, 1]
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        check_factories(cls)

    @property
    def is_event_time(self) -> bool:
        """Whether windows end with the watermark; else in processing time, or never."""
        return True

    @property
    def in_processing_time(self) -> bool:
        """Whether windows end in processing time."""
        return self.has_bounds and not self.is_event_time

    @property
    def has_bounds(self) -> bool:
        """Whether every window has a start and an end."""
        return True

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the row that `assign_windows` reads."""
        return ()

    @property
    def longest_slide(self) -> int:
        """Upper bound of the ticks between the ends of consecutive windows; 0 without slides."""
        return 0

    @property
    def usable_ticks(self) -> tuple[int, int]:
        """First and last timestamp whose windows fit into int64."""
        return LONG_MIN + 1, LONG_MAX

    @property
    def row_checks(self) -> tuple[DurationCheck, ...]:
        """Conditions on values of a row; rows that break one are rejected."""
        return ()

    @abstractmethod
    def assign_windows(
        self, row: Row, timestamp: int, context: AssignerContext
    ) -> Sequence[Window]:
        """Return the windows of a row."""

    def default_trigger(self) -> Trigger:
        """Return the trigger of a query without one."""
        return EventTimeTrigger() if self.is_event_time else ProcessingTimeTrigger()

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        return type(self).__name__

    def picture(self) -> str:
        """Return an SVG of some windows in a row, if they have a size; else an empty string."""
        size = getattr(self, "size", None)
        slide = getattr(self, "slide", size)
        if not isinstance(size, int) or not isinstance(slide, int) or min(size, slide) <= 0:
            return ""
        return windows_svg((n * slide, n * slide + size) for n in range(PICTURED))

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return table_html(type(self).__name__, {"windows": self.describe()}, self.picture())


class MergingWindowAssigner(WindowAssigner):
    """An assigner whose windows may be merged (Flink: MergingWindowAssigner).

    Examples
    --------
    >>> from gpu_windows.typing import TimeWindow
    >>> class Visits(gw.functions.MergingWindowAssigner):
    ...     columns = ("stay",)
    ...
    ...     def assign_windows(self, row, timestamp, context):
    ...         return [TimeWindow(timestamp, timestamp + row["stay"])]
    >>> clicks = gw.stream(pa.table({"user": ["ann"] * 3, "ts": [0, 4, 9], "stay": [5, 5, 5]}))
    >>> timed = clicks.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    >>> timed.key_by("user").window(Visits()).aggregate(n=gw.count())["n"].to_pylist()
    [3]
    """

    def merge_order(self, windows: Sequence[TimeWindow]) -> Sequence[TimeWindow]:
        """Return the order in which the contents of merged windows are concatenated."""
        return windows

    def merge_windows(
        self, windows: Sequence[TimeWindow]
    ) -> list[tuple[TimeWindow, list[TimeWindow]]]:
        """Return every merged window, and the windows that it is made of.

        Unchanged windows are left out. Unless overridden, windows that intersect or touch are
        merged.
        """
        groups: list[tuple[TimeWindow, list[TimeWindow]]] = []
        for window in sorted(windows):
            if groups and window.start <= groups[-1][0].end:
                whole, parts = groups[-1]
                whole = TimeWindow(whole.start, max(whole.end, window.end))
                groups[-1] = (whole, [*parts, window])
            else:
                groups.append((window, [window]))
        return [(whole, parts) for whole, parts in groups if len(parts) > 1]


def check_assigner(assigner: object) -> None:
    """Raise `QueryError` unless this is a window assigner."""
    if not isinstance(assigner, WindowAssigner):
        rule = "window takes a window assigner, such as TumblingEventTimeWindows.of('1 minute')"
        raise QueryError(rule, value=repr(assigner))
