"""Windows of processing time: those of event time, into which the current time puts rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpu_windows import rules
from gpu_windows.vocabulary.windows.base import AssignerContext, Row, TimeWindow
from gpu_windows.vocabulary.windows.sliced import (
    CumulativeEventTimeWindows,
    SlicedAssigner,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)


class _InProcessingTime(SlicedAssigner):
    """Puts rows into the windows of processing time; their own timestamps are not used."""

    is_event_time = False

    @property
    def usable_ticks(self) -> tuple[int, int]:
        """Return all."""
        return rules.LONG_MIN, rules.LONG_MAX

    def assign_windows(
        self, row: Row, timestamp: int, context: AssignerContext
    ) -> Sequence[TimeWindow]:
        """Return the windows that contain the current processing time."""
        return self.assign(context.current_processing_time)


@dataclass(frozen=True)
class TumblingProcessingTimeWindows(_InProcessingTime, TumblingEventTimeWindows):
    """Windows of processing time, of one size, without overlap.

    (Flink: TumblingProcessingTimeWindows.)

    Parameters
    ----------
    size, offset : int
        In ticks; ``of`` takes durations.

    Examples
    --------
    >>> gw.TumblingProcessingTimeWindows.of("1 minute").describe()
    'tumbling 1 min, processing time'
    """


@dataclass(frozen=True)
class CumulativeProcessingTimeWindows(_InProcessingTime, CumulativeEventTimeWindows):
    """Windows of processing time that share a start and grow by ``step`` up to ``max_size``.

    (Flink SQL: CUMULATE over a processing-time attribute.)

    Parameters
    ----------
    max_size, step, offset : int
        In ticks; ``of`` takes durations.

    Examples
    --------
    >>> gw.CumulativeProcessingTimeWindows.of("1 day", "1 hour").describe()
    'cumulative up to 1 d by 1 h, processing time'
    """


@dataclass(frozen=True)
class SlidingProcessingTimeWindows(_InProcessingTime, SlidingEventTimeWindows):
    """Windows of processing time that start every ``slide``.

    (Flink: SlidingProcessingTimeWindows.)

    Parameters
    ----------
    size, slide, offset : int
        In ticks; ``of`` takes durations.

    Examples
    --------
    >>> gw.SlidingProcessingTimeWindows.of("1 hour", "5 minutes").describe()
    'sliding 1 h every 5 min, processing time'
    """
