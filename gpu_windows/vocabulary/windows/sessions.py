"""Sessions: windows that grow while rows come within a gap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Self

from gpu_windows.errors import InvalidWindowError
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.vocabulary.options import Duration, show_ticks, ticks
from gpu_windows.vocabulary.windows.base import (
    AssignerContext,
    DurationCheck,
    MergingWindowAssigner,
    Row,
    TimeWindow,
)
from gpu_windows.vocabulary.windows.sliced import check_positive

_MASK64 = 2**64 - 1


@dataclass(frozen=True)
class EventTimeSessionWindows(MergingWindowAssigner):
    """A session ends when no row has come for a gap of event time (Flink: EventTimeSessionWindows).

    A row opens ``[ts, ts + gap)``; windows that intersect or touch are one session.

    Parameters
    ----------
    gap : int
        In ticks; 0 with a dynamic gap.
    gap_column : str, optional
        A column that holds the gap of each row: microseconds (an integer or INTERVAL DAY TO
        SECOND), positive (Flink: DynamicEventTimeSessionWindows). A row whose gap is null, 0 or
        negative, or whose session would not fit int64, is rejected as ``invalid_session_gap``.
    ticks_per_ms : int
        Flink concatenates the rows of merged sessions in the order of a hash set of its windows,
        whose unit is the millisecond; so does this package.

    Examples
    --------
    >>> clicks = gw.stream(pa.table({"user": ["ann"] * 3, "ts": [0, 50_000_000, 200_000_000]}))
    >>> timed = clicks.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    >>> sessions = timed.key_by("user").window(gw.EventTimeSessionWindows.with_gap("1 minute"))
    >>> sessions.aggregate(n=gw.count())["n"].to_pylist()
    [2, 1]
    """

    gap: int
    gap_column: str | None = None
    ticks_per_ms: int = 1_000

    @classmethod
    def with_gap(cls, gap: Duration) -> Self:
        """End a session after ``gap`` without a row.

        Parameters
        ----------
        gap : str or datetime.timedelta
            Positive, such as ``"30 minutes"``.
        """
        return cls(ticks(gap))

    @classmethod
    def with_dynamic_gap(cls, column: str) -> Self:
        """Take the gap from a column of each row.

        Rows with a gap that is null or not positive are rejected: see
        `gpu_windows.typing.Outputs.rejected`.

        Parameters
        ----------
        column : str
            Column of gaps: integer microseconds or INTERVAL DAY TO SECOND.

        Examples
        --------
        >>> clicks = pa.table({"ts": [0, 10], "gap": [60_000_000, None]})
        >>> timed = gw.stream(clicks).event_time(
        ...     "ts", gw.WatermarkStrategy.for_monotonous_timestamps()
        ... )
        >>> sessions = timed.window_all(gw.EventTimeSessionWindows.with_dynamic_gap("gap"))
        >>> outputs = sessions.with_outputs().aggregate(n=gw.count())
        >>> outputs.result()["n"].to_pylist(), outputs.rejected()["rejection_reason"].to_pylist()
        ([1], ['invalid_session_gap'])
        """
        return cls(0, column)

    def __post_init__(self) -> None:
        if self.gap_column is None:
            check_positive("gap", self.gap)

    @property
    def columns(self) -> tuple[str, ...]:
        """The column of a dynamic gap."""
        return () if self.gap_column is None else (self.gap_column,)

    @property
    def usable_ticks(self) -> tuple[int, int]:
        """First and last timestamp whose windows fit into int64."""
        low, high = super().usable_ticks
        return low, high - max(self.gap, 1)

    @property
    def row_checks(self) -> tuple[DurationCheck, ...]:
        """A dynamic gap is positive, and the session fits int64.

        Flink throws at a row whose gap is 0 or negative, so the job fails at every restart.
        """
        if self.gap_column is None:
            return ()
        return (DurationCheck(self.gap_column, of_event_time=self.is_event_time),)

    def gap_of(self, row: Row) -> int:
        """Return the gap of a row; operators reject rows that break `row_checks` before.

        Raises
        ------
        InvalidWindowError
            If it is not positive.
        """
        if self.gap_column is None:
            return self.gap
        gap = row[self.gap_column]
        if isinstance(gap, timedelta):
            gap = ticks(gap)
        if not isinstance(gap, int) or gap <= 0:
            rule = "the gap of a session must be positive"
            raise InvalidWindowError(rule, value=gap, column=self.gap_column)
        return gap

    def assign_windows(
        self, row: Row, timestamp: int, context: AssignerContext
    ) -> Sequence[TimeWindow]:
        """Return the row's own window; the operator merges it."""
        return [TimeWindow(timestamp, min(timestamp + self.gap_of(row), LONG_MAX))]

    def merge_order(self, windows: Sequence[TimeWindow]) -> Sequence[TimeWindow]:
        """Return the order of Java's hash set of Flink's windows."""
        slots = 16
        while 4 * len(windows) > 3 * slots:
            slots *= 2
        return sorted(windows, key=lambda window: self._hash(window) & (slots - 1))

    def _hash(self, window: TimeWindow) -> int:
        milliseconds = window.start // self.ticks_per_ms + window.end // self.ticks_per_ms
        mixed = milliseconds & _MASK64
        mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9 & _MASK64
        mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB & _MASK64
        short = (mixed ^ (mixed >> 31)) & 0xFFFFFFFF
        return short ^ (short >> 16)

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        gap = show_ticks(self.gap) if self.gap_column is None else f"column {self.gap_column}"
        return (
            f"sessions with a gap of {gap}, {'event' if self.is_event_time else 'processing'} time"
        )


@dataclass(frozen=True)
class ProcessingTimeSessionWindows(EventTimeSessionWindows):
    """A session ends when no row has come for a gap of processing time.

    (Flink: ProcessingTimeSessionWindows, DynamicProcessingTimeSessionWindows.)

    Parameters
    ----------
    gap, gap_column, ticks_per_ms :
        See `EventTimeSessionWindows`.

    Examples
    --------
    >>> gw.ProcessingTimeSessionWindows.with_gap("30 minutes").describe()
    'sessions with a gap of 30 min, processing time'
    """

    is_event_time = False
    #: Return all: the timestamp of a row is not used.
    usable_ticks = LONG_MIN, LONG_MAX

    def assign_windows(
        self, row: Row, timestamp: int, context: AssignerContext
    ) -> Sequence[TimeWindow]:
        """Return the row's own window, at the current processing time."""
        return super().assign_windows(row, context.current_processing_time, context)
