"""Spark's watermark, in milliseconds, and an operator's ticks."""

from __future__ import annotations

from dataclasses import dataclass

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
        What Spark calls the millisecond of tick 0; a replay of times before 1970 moves them, for
        Spark has no watermark there.
    """

    ticks_a_ms: int = 1_000
    base_ms: int = 0

    def watermark(self, ms: int) -> int | None:
        """Return Spark's watermark in ticks: all up to it is there. 0: there is none yet."""
        if ms <= 0:
            return None
        return LONG_MAX if ms >= END_MS else (ms - self.base_ms) * self.ticks_a_ms - 1

    def first_ms(self, tick: int) -> int:
        """Return Spark's first watermark that is at least a tick."""
        return min(-(-(tick + 1) // self.ticks_a_ms) + self.base_ms, END_MS)
