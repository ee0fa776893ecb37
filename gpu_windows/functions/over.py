"""What an OVER query computes: for each row aggregates over a frame of the rows of its key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property

from gpu_windows.aggregates.definitions import BoundAggregate
from gpu_windows.aggregates.partials import Combine, Partial
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.vocabulary.frames import Frame

#: Reserved at both ends of int64 for times that are none: of what is put before the first row.
_RESERVED = 4


class Lateness(Enum):
    """By what a row is too late; each as Flink's function for such frames has it."""

    #: Up to the watermark. RowTimeRangeUnboundedPrecedingFunction; frames with rows to come, too.
    WATERMARK = "watermark"
    #: Up to the last row of the key that has been given. RowTimeRowsBoundedPrecedingFunction.
    LAST_ROW = "last row"
    #: Up to the last timer of the key, until its state is cleared.
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
    def made(self) -> BoundAggregate:
        """The aggregate that is made of `partials`: of different values, what it is of all."""
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
        """The primitive partials that it needs; of different values, sums are of these."""
        once = self.of_different_values
        return tuple(
            replace(each, once=True) if once and each.combine is Combine.ADD else each
            for each in self.made.partials
        )

    @property
    def counts_once(self) -> bool:
        """Whether which values a frame holds has to be known."""
        return any(partial.once for partial in self.partials)

    def describe(self) -> str:
        """Return it as SQL would write it."""
        return f"{self.bound.name} = {self.bound.describe()} OVER {self.frame.describe()}"


@dataclass(frozen=True)
class Over:
    """Aggregates over frames.

    Parameters
    ----------
    columns : tuple of OverColumn
        The results.
    carried : tuple of str
        Columns of a row that stand in its result.
    """

    columns: tuple[OverColumn, ...]
    carried: tuple[str, ...] = ()

    @cached_property
    def frames(self) -> tuple[Frame, ...]:
        """The frames, each once."""
        return tuple(dict.fromkeys(column.frame for column in self.columns))

    def partials(self, frame: Frame) -> tuple[Partial, ...]:
        """Return the partials that are needed over a frame, each once."""
        mine = (column for column in self.columns if column.frame == frame)
        return tuple(dict.fromkeys(partial for each in mine for partial in each.partials))

    @property
    def arguments(self) -> tuple[str, ...]:
        """Columns that aggregates read, each once."""
        return self.arguments_of(self.frames)

    def arguments_of(self, frames: Sequence[Frame]) -> tuple[str, ...]:
        """Return the columns that aggregates over some frames read, each once."""
        mine = (column.bound for column in self.columns if column.frame in frames)
        return tuple(dict.fromkeys(name for bound in mine for name in bound.columns))

    # ---- what of the rows of a key is needed later

    @property
    def in_time(self) -> tuple[Frame, ...]:
        """The frames of time that do not begin with the first row."""
        return tuple(f for f in self.frames if f.in_time and not f.is_unbounded_before)

    @property
    def in_rows(self) -> tuple[Frame, ...]:
        """The frames of rows that do not begin with the first row."""
        return tuple(f for f in self.frames if not f.in_time and not f.is_unbounded_before)

    @property
    def unbounded(self) -> tuple[Frame, ...]:
        """The frames that begin with the first row of the key."""
        return tuple(frame for frame in self.frames if frame.is_unbounded_before)

    @property
    def ticks_before(self) -> int:
        """How much earlier than a row those may be that are in its frames of time."""
        return max((frame.preceding for frame in self.in_time), default=0)

    @property
    def rows_before(self) -> int:
        """How many rows before a row are in its frames of rows."""
        return max((frame.preceding for frame in self.in_rows), default=0)

    @property
    def ticks_after(self) -> int:
        """How long after a row's time its frames are complete."""
        return max((frame.following for frame in self.frames if frame.in_time), default=0)

    @property
    def rows_after(self) -> int:
        """How many rows after a row its frames are complete."""
        return max((frame.following for frame in self.frames if not frame.in_time), default=0)

    @property
    def lateness(self) -> Lateness:
        """By what a row is too late."""
        if self.unbounded or self.ticks_after or self.rows_after:
            return Lateness.WATERMARK
        if not self.in_time:
            return Lateness.LAST_ROW
        return Lateness.WATERMARK if self.in_rows else Lateness.LAST_TIMER

    @property
    def usable_ticks(self) -> tuple[int, int]:
        """First and last time of a row with which all that is computed of it fits int64."""
        margin = _RESERVED + 2 * self.ticks_before + (min(self.ticks_after, LONG_MAX // 4))
        return LONG_MIN + margin, LONG_MAX - margin

    @property
    def ordered(self) -> tuple[str, ...]:
        """Which results depend on the order of rows of the same time, in words."""
        return tuple(
            column.describe()
            for column in self.columns
            if not column.frame.in_time or _picks(column.bound)
        )

    def describe(self) -> str:
        """Return what is computed."""
        return ", ".join(column.describe() for column in self.columns)


def _picks(bound: BoundAggregate) -> bool:
    return any(partial.combine is Combine.PICK for partial in bound.partials)
