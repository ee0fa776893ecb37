"""Spark's times, in milliseconds, and an operator's ticks."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_windows.query.base import Query
from gpu_windows.rules import LONG_MAX

#: A watermark from which on there is no more time: replays end with it, Spark never gets there.
END_MS = 1 << 62


@dataclass(frozen=True)
class SparkClock:
    """How Spark's milliseconds and ticks go together.

    Parameters
    ----------
    ticks_a_ms : int
        Users' ticks are microseconds. In a replay a millisecond may be a tick.
    base_ms : int
        What Spark's watermark is at tick 0; a replay of times before 1970 moves them, for Spark
        has no watermark there.
    """

    ticks_a_ms: int = 1_000
    base_ms: int = 0

    def watermark(self, ms: int) -> int | None:
        """Return Spark's watermark in ticks: all up to it is there. 0: there is none yet."""
        if ms <= 0:
            return None
        return LONG_MAX if ms >= END_MS else (ms - self.base_ms) * self.ticks_a_ms - 1

    def first_watermark(self, tick: int) -> int:
        """Return Spark's first watermark that is at least a tick."""
        return min(-(-(tick + 1) // self.ticks_a_ms) + self.base_ms, END_MS)

    def time(self, ms: int) -> int:
        """Return Spark's processing time in ticks."""
        return ms * self.ticks_a_ms

    def first_time(self, tick: int) -> int:
        """Return Spark's first processing time that is at least a tick."""
        return min(-(-tick // self.ticks_a_ms), END_MS)


@dataclass(frozen=True)
class Times:
    """What moves the operator of a query in a micro-batch, and when Spark has to call again.

    Parameters
    ----------
    query : Query
    clock : SparkClock
    """

    query: Query
    clock: SparkClock = SparkClock()

    @property
    def mode(self) -> str:
        """Spark's time mode: which of its times fires its timers."""
        return "ProcessingTime" if self.in_processing_time else "EventTime"

    @property
    def in_processing_time(self) -> bool:
        """Whether something happens in processing time, without any row."""
        watermarks = self.query.watermarks
        moves = watermarks.in_processing_time or watermarks.is_own
        return self.query.uses_processing_time or moves

    def processing_time(self, now_ms: int) -> int | None:
        """Return the operator's processing time; None where nothing asks for it."""
        return self.clock.time(now_ms) if self.query.reads_processing_time else None

    def watermark(self, now_ms: int, watermark_ms: int) -> int | None:
        """Return the operator's watermark; None if there is none yet.

        Rows of a micro-batch are stamped with its processing time where that is their event time.
        """
        if self.query.watermarks.in_processing_time:
            return self.clock.time(now_ms) - 1
        return self.clock.watermark(watermark_ms)

    def next_call(
        self, timers: tuple[int | None, int | None], now_ms: int, watermark_ms: int
    ) -> int | None:
        """Return the time of Spark's at which something is due.

        What is due already waits for the next micro-batch, as for Flink's next watermark. Where
        Spark's timers are of processing time, those of event time wait for any micro-batch: Spark
        does not tell of a watermark then.

        Parameters
        ----------
        timers : (int or None, int or None)
            As `gpu_windows.operators.base.Operator.next_timers` returns them.
        now_ms, watermark_ms : int
            Spark's times in this micro-batch.
        """
        event, processing = timers
        if not self.in_processing_time:
            if event is None:
                return None
            return max(self.clock.first_watermark(event), watermark_ms + 1)
        due = self.due_by_clock(processing)
        if event is not None:
            arrives = self.query.watermarks.in_processing_time
            due.append(self.clock.first_time(event + 1) if arrives else now_ms + 1)
        return max(min(due), now_ms + 1) if due else None

    def due_by_clock(self, processing: int | None) -> list[int]:
        """Return Spark's times at which something waits for a processing time."""
        return [] if processing is None else [self.clock.first_time(processing)]
