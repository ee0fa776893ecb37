"""OVER aggregates: for each row, aggregates over a frame of the rows of its key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property

from gpu_windows.aggregates.definitions import BoundAggregate
from gpu_windows.aggregates.partials import Combine, Partial
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.vocabulary.frames import Frame

#: Ticks reserved at both ends of int64 for markers, such as the time before the first row.
_RESERVED = 4


class Lateness(Enum):
    """The bound up to which rows are late, as in Flink's function for such frames."""

    #: The watermark. RowTimeRangeUnboundedPrecedingFunction; also frames with following rows.
    WATERMARK = "watermark"
    #: The last row of the key that was emitted. RowTimeRowsBoundedPrecedingFunction.
    LAST_ROW = "last row"
    #: The last timer of the key, until its state is cleared.
    #: RowTimeRangeBoundedPrecedingFunction.
    LAST_TIMER = "last timer"


@dataclass(frozen=True)
class OverColumn:
    """A result column.

    Parameters
    ----------
    bound : BoundAggregate
    frame : Frame
    """

    bound: BoundAggregate
    frame: Frame

    @property
    def combined_aggregate(self) -> BoundAggregate:
        """The aggregate that `partials` are combined to: the same without DISTINCT."""
        if not self.of_different_values:
            return self.bound
        aggregate = self.bound.aggregate
        function = "count" if aggregate.function == "count_distinct" else aggregate.function
        alone = replace(aggregate, function=function, is_distinct=False)
        return replace(self.bound, aggregate=alone, nullable=True)  # values are counted, not rows

    @property
    def of_different_values(self) -> bool:
        """Whether each different value counts once."""
        aggregate = self.bound.aggregate
        return aggregate.is_distinct or aggregate.function == "count_distinct"

    @property
    def partials(self) -> tuple[Partial, ...]:
        """The primitive partials that it needs; DISTINCT sums add each different value once."""
        once = self.of_different_values
        return tuple(
            replace(each, once=True) if once and each.combine is Combine.ADD else each
            for each in self.combined_aggregate.partials
        )

    @property
    def counts_once(self) -> bool:
        """Whether it needs the count of each different value in a frame."""
        return any(partial.once for partial in self.partials)

    def describe(self) -> str:
        """Return the column as in SQL."""
        return f"{self.bound.name} = {self.bound.describe()} OVER {self.frame.describe()}"


@dataclass(frozen=True)
class Over:
    """Aggregates over frames.

    Parameters
    ----------
    columns : tuple of OverColumn
        The results.
    carried : tuple of str
        Columns of a row that its result carries.
    """

    columns: tuple[OverColumn, ...]
    carried: tuple[str, ...] = ()

    @cached_property
    def frames(self) -> tuple[Frame, ...]:
        """The frames, each once."""
        return tuple(dict.fromkeys(column.frame for column in self.columns))

    def partials(self, frame: Frame) -> tuple[Partial, ...]:
        """Return the partials that are needed over a frame, each once."""
        in_frame = (column for column in self.columns if column.frame == frame)
        return tuple(dict.fromkeys(partial for each in in_frame for partial in each.partials))

    @property
    def arguments(self) -> tuple[str, ...]:
        """Columns that aggregates read, each once."""
        return self.arguments_of(self.frames)

    def arguments_of(self, frames: Sequence[Frame]) -> tuple[str, ...]:
        """Return the columns that aggregates over some frames read, each once."""
        aggregates = (column.bound for column in self.columns if column.frame in frames)
        return tuple(dict.fromkeys(name for bound in aggregates for name in bound.columns))

    # ---- which rows of a key later results need

    @property
    def in_time(self) -> tuple[Frame, ...]:
        """The frames of time that do not begin with the first row."""
        return tuple(f for f in self.frames if f.in_time and not f.is_unbounded_before)

    @property
    def in_rows(self) -> tuple[Frame, ...]:
        """The frames of rows that do not begin with the first row."""
        return tuple(f for f in self.frames if not f.in_time and not f.is_unbounded_before)

    @property
    def unbounded_frames(self) -> tuple[Frame, ...]:
        """The frames that begin with the first row of the key."""
        return tuple(frame for frame in self.frames if frame.is_unbounded_before)

    @property
    def ticks_before(self) -> int:
        """How far the frames of time reach before a row, in ticks."""
        return max((frame.preceding for frame in self.in_time), default=0)

    @property
    def rows_before(self) -> int:
        """How far the frames of rows reach before a row, in rows."""
        return max((frame.preceding for frame in self.in_rows), default=0)

    @property
    def ticks_after(self) -> int:
        """How far the frames of time reach after a row, in ticks: then they are complete."""
        return max((frame.following for frame in self.frames if frame.in_time), default=0)

    @property
    def rows_after(self) -> int:
        """How far the frames of rows reach after a row, in rows: then they are complete."""
        return max((frame.following for frame in self.frames if not frame.in_time), default=0)

    @property
    def lateness(self) -> Lateness:
        """The bound up to which rows are late."""
        if self.unbounded_frames or self.ticks_after or self.rows_after:
            return Lateness.WATERMARK
        if not self.in_time:
            return Lateness.LAST_ROW
        return Lateness.WATERMARK if self.in_rows else Lateness.LAST_TIMER

    @property
    def usable_ticks(self) -> tuple[int, int]:
        """First and last event time of a row for which all computed times fit int64 ticks."""
        margin = _RESERVED + 2 * self.ticks_before + (min(self.ticks_after, LONG_MAX // 4))
        return LONG_MIN + margin, LONG_MAX - margin

    @property
    def order_dependent(self) -> tuple[str, ...]:
        """Descriptions of the results that depend on the order of rows of the same time."""
        return tuple(
            column.describe()
            for column in self.columns
            if not column.frame.in_time
            or any(partial.combine is Combine.PICK for partial in column.bound.partials)
        )

    def describe(self) -> str:
        """Return a description for ``explain()``."""
        return ", ".join(column.describe() for column in self.columns)
