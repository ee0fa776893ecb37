"""The function of an interval join: pairs of rows of two inputs that are near in time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from gpu_windows import rules
from gpu_windows.functions.join import KEEPS_LEFT, KEEPS_RIGHT, LEFT_ALONE, Pair
from gpu_windows.functions.join_function import PairProcess
from gpu_windows.functions.two_inputs import SIDE
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.vocabulary.options import show_ticks

Nearest = Literal["before", "after", "either"]


@dataclass(frozen=True)
class IntervalJoinSpec:
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
        The columns of the pairs, after the keys.
    nearest : {"before", "after", "either"}, optional
        Of the right rows within the bounds only the nearest one that is not later, not earlier, or
        any; of two that are equally near the earlier one. Then a left row gives its pair when
        it is dropped, for a nearer one may come until then.
    joins_late : bool
        Whether late rows join the rows that are there, as in Flink's SQL. A bounded input has
        none.
    process : PairProcess, optional
        What takes the pairs; then its results are those of the join.

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
        """What it reads."""
        return (SIDE, *self.pair.left, *self.pair.right)

    @property
    def is_empty(self) -> bool:
        """Whether no row can have a partner."""
        return self.lower > self.upper

    @property
    def usable_ticks(self) -> tuple[int, int]:
        """First and last time of a row for which all bounds fit int64; the first int64 is none."""
        margin = max(abs(self.lower), abs(self.upper), *self.retention)
        return LONG_MIN + 1 + margin, LONG_MAX - margin

    @property
    def retention(self) -> tuple[int, int]:
        """How long a left row, and a right row, is kept after its time, in ticks.

        A row is dropped when the watermark reaches its time plus this. With ``nearest`` a left row
        looks for its partner only when it is dropped, so right rows are kept longer by as much. In
        SQL a row is dropped when the watermark is past its last partner's time: a tick later than
        elsewhere, and before its own time where all its partners are earlier than itself.
        """
        if self.joins_late:
            return self.upper + 1, 1 - self.lower
        left, right = max(self.upper, 0), max(-self.lower, 0)
        return left, right if self.nearest is None else right + left

    @property
    def reach(self) -> tuple[int, int]:
        """How much later than a left row, and than a right row, its last partner may be."""
        return self.upper, -self.lower

    def clock(self, watermark: int) -> int:
        """Return the time at which rows are judged."""
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
        """Return what depends on the order of arrival, in words."""
        if self.nearest is not None:
            return ("which of several nearest rows of one time it is",)
        return ("what late rows meet",) if self.joins_late and not bounded else ()

    def describe(self) -> str:
        """Return what is computed, for ``explain()``."""
        bounds = f"between {show_ticks(self.lower)} and {show_ticks(self.upper)}"
        held = "" if self.pair.condition is None else f" where {self.pair.condition}"
        held += ", null keys too" if self.pair.null_safe else ""
        which = "right rows" if self.nearest is None else f"the nearest right row ({self.nearest})"
        late = ", late ones too" if self.joins_late else ""
        taken = "" if self.process is None else f", pairs for {self.process.describe()}"
        return f"{self.pair.how} join, {which} {bounds} from left ones{held}{late}{taken}"
