"""Watermark strategies: how far event time has come, given the rows seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from gpu_windows.errors import InvalidDurationError
from gpu_windows.options import Duration, show_ticks, ticks


@dataclass(frozen=True)
class WatermarkStrategy:
    """Periodic watermarks: ``max ts - out_of_orderness - 1`` (Flink: WatermarkStrategy).

    On a bounded input every row counts: the watermark goes to the end of time after the last
    row, whatever the strategy.

    Parameters
    ----------
    out_of_orderness : int
        How late a row may be behind the latest one, in ticks.
    """

    out_of_orderness: int
    #: Whether the watermark is the clock's: event time is the time of arrival.
    of_clock: ClassVar[bool] = False
    #: Whether there is a watermark at all before the end of the input.
    moves: ClassVar[bool] = True

    @staticmethod
    def no_watermarks() -> WatermarkStrategy:
        """Event time stands still: for windows and triggers of the clock."""
        return NoWatermarks(0)

    @classmethod
    def for_bounded_out_of_orderness(cls, bound: Duration) -> Self:
        """Rows are at most ``bound`` behind the latest one."""
        return cls(ticks(bound))

    @classmethod
    def for_monotonous_timestamps(cls) -> Self:
        """Rows come in time order."""
        return cls(0)

    def __post_init__(self) -> None:
        if self.out_of_orderness < 0:
            rule = "out-of-orderness must not be negative"
            raise InvalidDurationError(rule, value=show_ticks(self.out_of_orderness))

    def watermark(self, max_ts: int) -> int:
        """Return the watermark after a row at ``max_ts``, in ticks."""
        return max_ts - self.out_of_orderness - 1

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        return f"latest row - {show_ticks(self.out_of_orderness)}"


class NoWatermarks(WatermarkStrategy):
    """Event time that stands still (Flink: noWatermarks)."""

    moves = False

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        return "none"


class ClockWatermarks(WatermarkStrategy):
    """The watermark of ingestion time: whatever the clock has passed."""

    of_clock = True

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        return "of the clock, as rows arrive"
