"""The function of an interval join: pairs of rows of two inputs that are near in time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from gpu_windows import rules
from gpu_windows.functions.join import (
    KEEPS_LEFT,
    KEEPS_RIGHT,
    LEFT_ALONE,
    Pair,
    describe_target,
)
from gpu_windows.functions.join_function import PairProcess
from gpu_windows.functions.two_inputs import SIDE
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.vocabulary.options import show_ticks

Nearest = Literal["before", "after", "either"]


@dataclass(frozen=True)
class IntervalJoinSpec:
    """Every left row with the right rows of its key within bounds of its time.

    A pair is emitted when the later of its rows arrives. A row is stored until the watermark says
    that no match can arrive any longer.

    Parameters
    ----------
    pair : Pair
    lower, upper : int
        ``left_ts + lower <= right_ts <= left_ts + upper``, in ticks; nothing joins if ``lower`` is
        greater, as it may be after a bound was made exclusive.
    output : pyarrow.Schema
        The columns of the pairs, after the keys.
    nearest : {"before", "after", "either"}, optional
        Joins only the nearest right row within the bounds that is not later, not earlier, or any;
        of two that are equally near the earlier one. Then the pair of a left row is emitted when
        the row expires, because a nearer match may arrive until then.
    joins_late : bool
        Whether late rows join stored rows, as in Flink's SQL. A bounded input has no late rows.
    process : PairProcess, optional
        A user's function of the pairs; its results are then those of the join.

    Notes
    -----
    Source: org.apache.flink.streaming.api.operators.co.IntervalJoinOperator; with ``joins_late``
    org.apache.flink.table.runtime.operators.join.interval.TimeIntervalJoin.
    """

    pair: Pair
    lower: int
    upper: int
    output: pa.Schema
    nearest: Nearest | None = None
    joins_late: bool = False
    process: PairProcess | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that are read."""
        return (SIDE, *self.pair.left, *self.pair.right)

    @property
    def is_empty(self) -> bool:
        """Whether no row can have a match."""
        return self.lower > self.upper

    @property
    def usable_ticks(self) -> tuple[int, int]:
        """First and last event time of a row for which all bounds fit int64 above the least."""
        margin = max(abs(self.lower), abs(self.upper), *self.retention)
        return LONG_MIN + 1 + margin, LONG_MAX - margin

    @property
    def retention(self) -> tuple[int, int]:
        """How long a left row, and a right row, is stored after its time, in ticks.

        A row expires when the watermark reaches its time plus this. With ``nearest`` a left row is
        matched only when it expires, so right rows are stored longer by the same time. In SQL a row
        expires when the watermark is past its last possible match: a tick later than elsewhere, and
        before the row's own time if all its matches are earlier.
        """
        if self.joins_late:
            return self.upper + 1, 1 - self.lower
        left, right = max(self.upper, 0), max(-self.lower, 0)
        return left, right if self.nearest is None else right + left

    @property
    def reach(self) -> tuple[int, int]:
        """How much later than a left row, and than a right row, its last match may be, in ticks."""
        return self.upper, -self.lower

    def clock(self, watermark: int) -> int:
        """Return the time by which rows are late or expire."""
        return rules.sql_clock(watermark) if self.joins_late else watermark

    @property
    def tracks(self) -> tuple[bool, bool]:
        """Whether match flags of left rows, and of right rows, are needed."""
        how = self.pair.how
        if self.nearest is not None:
            return False, False
        return how in (*KEEPS_LEFT, *LEFT_ALONE), how in KEEPS_RIGHT

    @property
    def emits_at_end(self) -> tuple[bool, bool]:
        """Whether left rows, and right rows, emit results when they expire."""
        how = self.pair.how
        return self.nearest is not None or how in (*KEEPS_LEFT, "anti"), how in KEEPS_RIGHT

    def order_dependent(self, *, bounded: bool) -> tuple[str, ...]:
        """Return descriptions of what depends on the order of arrival."""
        if self.nearest is not None:
            return ("which of several nearest rows of one time it is",)
        return ("what late rows meet",) if self.joins_late and not bounded else ()

    def describe(self) -> str:
        """Return a description for ``explain()``."""
        bounds = f"between {show_ticks(self.lower)} and {show_ticks(self.upper)}"
        which = "right rows" if self.nearest is None else f"the nearest right row ({self.nearest})"
        late = ", late ones too" if self.joins_late else ""
        extra = f"{self.pair.describe_terms()}{late}{describe_target(self.process)}"
        return f"{self.pair.how} join, {which} {bounds} from left ones{extra}"
