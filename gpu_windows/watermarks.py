"""Watermark strategies: how far event time has come, given the rows seen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from gpu_windows.errors import InvalidDurationError, QueryError
from gpu_windows.options import Duration, show_ticks, ticks
from gpu_windows.rules import LONG_MIN

if TYPE_CHECKING:
    from gpu_windows.annotations import Column


@dataclass(frozen=True)
class WatermarkStrategy:
    """Where watermarks come from (Flink: WatermarkStrategy).

    Periodic ones are ``max ts - out_of_orderness - 1``; punctuated ones are carried by rows.

    On a bounded input every row counts: the watermark goes to the end of time after the last
    row, whatever the strategy.

    Parameters
    ----------
    out_of_orderness : int
        How late a row may be behind the latest one, in ticks.
    column : str or Column, optional
        TIMESTAMP that carries the watermarks, null where a row carries none; then the time of
        rows does not move the watermark. A name in a query.
    """

    out_of_orderness: int = 0
    column: str | Column | None = None
    #: Whether the watermark is processing time: rows happen when they arrive.
    in_processing_time: ClassVar[bool] = False
    #: Whether there is a watermark at all before the end of the input.
    moves: ClassVar[bool] = True

    @staticmethod
    def no_watermarks() -> WatermarkStrategy:
        """Event time stands still: for windows and triggers of processing time."""
        return NoWatermarks()

    @classmethod
    def for_bounded_out_of_orderness(cls, bound: Duration) -> Self:
        """Rows are at most ``bound`` behind the latest one."""
        return cls(ticks(bound))

    @classmethod
    def for_monotonous_timestamps(cls) -> Self:
        """Rows come in time order."""
        return cls()

    @classmethod
    def for_punctuated(cls, column: str | Column) -> Self:
        """Some rows carry a watermark (Flink: a punctuated WatermarkGenerator).

        A watermark ``w`` in a row says that after it no row with ``ts <= w`` comes any more. One
        that is not later than those before it does nothing.

        A row that carries a watermark, and is null in all columns that the query needs, is a
        marker: it moves the watermark and is nowhere else, in no output and no counter.

        Parameters
        ----------
        column : str or Column
            TIMESTAMP (int64 microseconds in an Arrow table too), null where a row carries none. On
            a stream the watermark has milliseconds: it is the last ``k ms - 1 us`` that is not
            after what the rows of earlier micro-batches carry, so it is never ahead of it, and
            less than 1 ms behind. Say ``10:59:59.999999``, or ``11:00:00``, when all before 11
            o'clock is there.
        """
        return cls(0, column)

    def __post_init__(self) -> None:
        if self.out_of_orderness < 0:
            rule = "out-of-orderness must not be negative"
            raise InvalidDurationError(rule, value=show_ticks(self.out_of_orderness))
        if self.column is not None and self.out_of_orderness:
            rule = "watermarks are carried by a column or follow the latest row, not both"
            raise QueryError(rule, value=show_ticks(self.out_of_orderness))

    def watermark(self, max_ts: int) -> int:
        """Return the watermark after a row at ``max_ts``, in ticks, where rows do not carry it."""
        return max_ts - self.out_of_orderness - 1

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        if self.column is not None:
            return f"carried by {self.column}"
        return f"latest row - {show_ticks(self.out_of_orderness)}"


class NoWatermarks(WatermarkStrategy):
    """Event time that stands still (Flink: noWatermarks)."""

    moves = False

    def watermark(self, max_ts: int) -> int:
        """Return the beginning of time."""
        del max_ts
        return LONG_MIN

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        return "none"


class ClockWatermarks(WatermarkStrategy):
    """The watermark of ingestion time: whatever processing time has passed."""

    in_processing_time = True

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        return "processing time, as rows arrive"


@dataclass(frozen=True)
class UnionWatermarks(WatermarkStrategy):
    """The least of the watermarks of several inputs; on streams Spark follows each.

    Parameters
    ----------
    parts : tuple of WatermarkStrategy
        Of every input: the least of their watermarks counts.
    """

    parts: tuple[WatermarkStrategy, ...] = ()

    def watermark(self, max_ts: int) -> int:
        """Return the least that any input would allow."""
        return min(part.watermark(max_ts) for part in self.parts)

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        return f"the least of {', '.join(part.describe() for part in self.parts)}"


def check_union_watermarks(parts: Iterable[WatermarkStrategy]) -> None:
    """Refuse what cannot be followed in a union of inputs."""
    for part in parts:
        if part.column is not None or part.in_processing_time:
            rule = "a union takes watermarks that follow the latest row"
            raise QueryError(rule, value=part.describe())


def joined_watermarks(left: WatermarkStrategy, right: WatermarkStrategy) -> WatermarkStrategy:
    """Return the watermarks of two inputs that are joined: the least of both.

    Raises
    ------
    QueryError
        If one is of event time and the other of processing time.
    """
    kinds = {(part.in_processing_time, part.moves) for part in (left, right)}
    if len(kinds) > 1:
        rule = "both inputs of a join have an event time, or both are taken as they arrive"
        raise QueryError(rule, value=f"{left.describe()} and {right.describe()}")
    if left.in_processing_time or not left.moves:
        return left
    return UnionWatermarks(parts=(left, right))
