"""The function of an interval join: pairs of rows of two inputs that are near in time."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from gpu_windows.options import show_ticks
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.sides import KEEPS_LEFT, KEEPS_RIGHT, LEFT_ALONE, SIDE, Pair


@dataclass(frozen=True)
class JoinInTime:
    """Every left row with the right rows of its key within bounds of its time.

    A pair is given when the later of its rows arrives, and a row is kept for as long as the
    watermark lets a partner come.

    Parameters
    ----------
    pair : Pair
    lower, upper : int
        ``left_ts + lower <= right_ts <= left_ts + upper``, in ticks; nothing joins where ``lower``
        is greater, as it may be after a bound was made exclusive.
    output : pyarrow.Schema
        The columns of the results, after the keys.

    Notes
    -----
    Source: org.apache.flink.streaming.api.operators.co.IntervalJoinOperator.
    """

    pair: Pair
    lower: int
    upper: int
    output: pa.Schema

    @property
    def columns(self) -> tuple[str, ...]:
        """What it reads."""
        return (SIDE, *self.pair.left, *self.pair.right)

    @property
    def usable_ticks(self) -> tuple[int, int]:
        """First and last time of a row for which all bounds fit int64; the first int64 is none."""
        margin = max(abs(self.lower), abs(self.upper))
        return LONG_MIN + 1 + margin, LONG_MAX - margin

    @property
    def retention(self) -> tuple[int, int]:
        """How long a left row, and a right row, is kept after its time, in ticks."""
        return max(self.upper, 0), max(-self.lower, 0)

    @property
    def tracks(self) -> tuple[bool, bool]:
        """Whether it must know which left rows, and which right rows, have had a partner."""
        how = self.pair.how
        return how in (*KEEPS_LEFT, *LEFT_ALONE), how in KEEPS_RIGHT

    @property
    def tells_unmatched(self) -> tuple[bool, bool]:
        """Whether left rows, and right rows, without a partner are given when they are dropped."""
        how = self.pair.how
        return how in (*KEEPS_LEFT, "anti"), how in KEEPS_RIGHT

    def describe(self) -> str:
        """Return what is computed, for ``explain()``."""
        bounds = f"between {show_ticks(self.lower)} and {show_ticks(self.upper)}"
        held = "" if self.pair.condition is None else f" where {self.pair.condition}"
        return f"{self.pair.how} join, right rows {bounds} from left ones{held}"
