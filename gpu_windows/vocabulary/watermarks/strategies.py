"""Watermark strategies: how far event time has advanced, given the rows so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from gpu_windows.arguments import check_factories
from gpu_windows.errors import (
    FunctionFailedError,
    InvalidDurationError,
    InvalidFunctionError,
    QueryError,
)
from gpu_windows.rules import LONG_MIN
from gpu_windows.user_values import as_read_only, to_tick
from gpu_windows.vocabulary.options import Duration, is_whole, show_ticks, ticks

if TYPE_CHECKING:
    from gpu_windows.annotations import Column

#: A function from timestamps of rows of an input (int64[n], n > 0, ticks) to its watermark.
Generator = Callable[[NDArray[np.int64]], int]
_TICKS_PER_MS = 1_000


@check_factories
@dataclass(frozen=True)
class WatermarkStrategy:
    """Where watermarks come from (Flink: WatermarkStrategy).

    Periodic ones are ``max ts - out_of_orderness - 1``; punctuated ones are carried by rows.

    On a bounded input no row is late: with any strategy the watermark goes to the end of time after
    the last row.

    Parameters
    ----------
    out_of_orderness : int
        How late a row may be behind the latest one, in ticks.
    column : str or Column, optional
        TIMESTAMP that carries the watermarks, null where a row carries none; then the time of
        rows does not move the watermark. A name in a query.
    max_ahead : int, optional
        How far a row of a stream may be ahead of the clock, in ticks: see `guard`.
    idleness : int, optional
        How long a stream may be inactive until it is idle, in ticks: see `with_idleness`.
    closes : bool
        Whether event time advances by the clock while all inputs are idle: see `close_when_idle`.
    generator : callable, optional
        A function from timestamps to a watermark: see `for_generator`.

    Examples
    --------
    >>> strategy = gw.WatermarkStrategy.for_bounded_out_of_orderness("5 seconds")
    >>> strategy.with_idleness("1 minute").describe()
    'latest row - 5 s, idle after 1 min without rows'
    >>> clicks = gw.stream(pa.table({"user": ["ann"], "ts": [0]})).event_time("ts", strategy)
    """

    out_of_orderness: int = 0
    column: str | Column | None = None
    max_ahead: int | None = None
    idleness: int | None = None
    closes: bool = False
    generator: Generator | None = None
    #: Whether the watermark is processing time: the time of a row is that of its arrival.
    in_processing_time: ClassVar[bool] = False
    #: Whether there is a watermark at all before the end of the input.
    moves: ClassVar[bool] = True

    @staticmethod
    def no_watermarks() -> WatermarkStrategy:
        """Event time stands still: for windows and triggers of processing time."""
        return NoWatermarks()

    @classmethod
    def for_bounded_out_of_orderness(cls, bound: Duration) -> Self:
        """Rows are at most ``bound`` behind the latest one.

        Parameters
        ----------
        bound : str or datetime.timedelta
            Not negative, such as ``"5 seconds"``.

        Examples
        --------
        >>> gw.WatermarkStrategy.for_bounded_out_of_orderness("5 seconds").watermark(60_000_000)
        54999999
        """
        return cls(ticks(bound))

    @classmethod
    def for_monotonous_timestamps(cls) -> Self:
        """Rows come in time order."""
        return cls()

    @classmethod
    def for_punctuated(cls, column: str | Column) -> Self:
        """Some rows carry a watermark (Flink: a punctuated WatermarkGenerator).

        A watermark ``w`` in a row says that no further row with ``ts <= w`` comes. One that is not
        later than those before it does nothing.

        A row that carries a watermark, and is null in all columns that the query needs, is a
        marker: it moves the watermark, and is in no output and no counter.

        Parameters
        ----------
        column : str or Column
            TIMESTAMP (int64 microseconds in an Arrow table too), null where a row carries none. Say
            ``10:59:59.999999`` when all rows before 11 o'clock have come: ``11:00:00`` says that
            rows of that very microsecond have come, too.

        Examples
        --------
        >>> rows = pa.table(
        ...     {"user": ["ann", None], "ts": [0, None], "complete_to": [None, 59_999_999]}
        ... )
        >>> strategy = gw.WatermarkStrategy.for_punctuated("complete_to")
        >>> timed = gw.stream(rows).event_time("ts", strategy)
        >>> minutes = timed.key_by("user").window(gw.TumblingEventTimeWindows.of("1 minute"))
        >>> minutes.aggregate(n=gw.count()).select(["user", "n"]).to_pylist()
        [{'user': 'ann', 'n': 1}]
        """
        return cls(0, column)

    @classmethod
    def for_generator(cls, generator: Generator) -> Self:
        """Let a function of yours compute the watermark from timestamps (streams).

        Flink: forGenerator, of a periodic WatermarkGenerator. The watermark is the greatest that it
        has returned. So ``lambda at: int(np.quantile(at, 0.99))`` follows an input in which one row
        in a hundred is far ahead.

        Parameters
        ----------
        generator : callable
            Timestamps (int64[n], n > 0, microseconds since the epoch, read only) to a watermark: an
            int. It is called for parts of a micro-batch, at least one for each task, in any order,
            and must be deterministic, because a micro-batch may run again. It is pickled.

        Examples
        --------
        >>> import numpy as np
        >>> def most(timestamps):
        ...     return int(np.quantile(timestamps, 0.99))
        >>> gw.WatermarkStrategy.for_generator(most).describe()
        'by most of the timestamps'
        """
        return cls(generator=generator)

    def with_idleness(self, timeout: Duration) -> Self:
        """Let an idle input no longer hold back the watermark of a union or a join (streams).

        As in Flink: an input is idle once two micro-batches more than ``timeout`` apart, and all
        between them, had no row of it; the others advance without it. It counts again as soon as it
        is not behind them, and its rows that are behind may be late. When all inputs are idle the
        watermark is the greatest of them.

        The clock is that of micro-batches, so one that runs again decides the same. Rows without a
        time and rows that `guard` rejects do not count as activity.

        Parameters
        ----------
        timeout : timedelta or str
            At least a millisecond.

        Raises
        ------
        InvalidDurationError
            If it is shorter.
        QueryError
            If rows carry the watermark, or there is no watermark of event time.

        Examples
        --------
        >>> strategy = gw.WatermarkStrategy.for_bounded_out_of_orderness("5 seconds")
        >>> strategy.with_idleness("1 minute").close_when_idle().describe()
        'latest row - 5 s, idle after 1 min without rows, then by the clock'
        """
        if self.in_processing_time or not self.moves or self.column is not None:
            rule = "an input may be idle if its watermark follows its rows"
            raise QueryError(rule, value=self.describe())
        return replace(self, idleness=ticks(timeout))

    def close_when_idle(self) -> Self:
        """Let event time advance by the clock while the input is idle, so that its windows close.

        Otherwise windows stay open until the next row, which may never come. In a union and in a
        join all inputs must have this, and all be idle. While all are idle, windows, timers and
        lateness use a watermark that advances from its last value at the pace of the clock. A row
        that comes afterwards is late for windows that have closed meanwhile. While the query does
        not run no time passes: pending rows are read first after a restart.

        Raises
        ------
        QueryError
            If it is never idle: call `with_idleness` first.
        """
        if self.idleness is None:
            rule = "windows close when an input is idle: call with_idleness first"
            raise QueryError(rule, value=self.describe())
        return replace(self, closes=True)

    def guard(self, ahead: Duration) -> Self:
        """Reject rows of the far future, which would make all others late (streams).

        A row whose event time is more than ``ahead`` after the clock does not move the watermark.
        It is in no window, but among the rejected rows, with the reason ``future_timestamp``. The
        clock is the time at which its micro-batch began, so a micro-batch that runs again rejects
        the same rows. A watermark that a row carries is ignored if it is as far ahead.

        A bounded input has no guard: no row of it is late, and results must not depend on when the
        query runs.

        Parameters
        ----------
        ahead : timedelta or str
            Not negative. Clocks differ: seconds at least.

        Raises
        ------
        InvalidDurationError
            If it is negative.
        QueryError
            If there is no watermark of event time.

        Examples
        --------
        >>> strategy = gw.WatermarkStrategy.for_bounded_out_of_orderness("5 seconds")
        >>> strategy.guard("1 hour").describe()
        'latest row - 5 s, on streams without rows more than 1 h ahead'
        """
        if self.in_processing_time or not self.moves:
            rule = "guard needs a watermark that follows rows, or is carried by them"
            raise QueryError(rule, value=self.describe())
        return replace(self, max_ahead=ticks(ahead))

    def __post_init__(self) -> None:
        if not is_whole(self.out_of_orderness):
            rule = (
                "a WatermarkStrategy is made by for_bounded_out_of_orderness('5 seconds') and alike"
            )
            raise QueryError(rule, value=repr(self.out_of_orderness))
        if self.max_ahead is not None and self.max_ahead < 0:
            rule = "how far a row may be ahead of the clock must not be negative"
            raise InvalidDurationError(rule, value=show_ticks(self.max_ahead))
        if self.idleness is not None and self.idleness < _TICKS_PER_MS:
            rule = "an input is idle after a millisecond or longer"
            raise InvalidDurationError(rule, value=show_ticks(self.idleness))
        if self.out_of_orderness < 0:
            rule = "out-of-orderness must not be negative"
            raise InvalidDurationError(rule, value=show_ticks(self.out_of_orderness))
        if self.column is not None and self.out_of_orderness:
            rule = "watermarks are carried by a column or follow the latest row, not both"
            raise QueryError(rule, value=show_ticks(self.out_of_orderness))

    def watermark(self, max_ts: int) -> int:
        """Return the watermark after a row at ``max_ts``, in ticks, if rows do not carry it."""
        return max_ts - self.out_of_orderness - 1

    def watermark_of(self, timestamps: NDArray[np.int64]) -> int:
        """Return the watermark that the timestamps of some rows allow, in ticks.

        Parameters
        ----------
        timestamps : int64[n]
            At least one.

        Raises
        ------
        FunctionFailedError, InvalidFunctionError
            If a generator raises, or does not return an integer of 64 bits; nothing is rounded.
        """
        if self.generator is None:
            return max(self.watermark(int(timestamps.max())), LONG_MIN)
        try:
            returned = self.generator(as_read_only(timestamps))
        except Exception as error:
            called = getattr(self.generator, "__name__", type(self.generator).__name__)
            cause = f"{type(error).__name__}: {error}"
            raise FunctionFailedError(f"the generator of watermarks {called}", cause) from error
        watermark = to_tick(returned)
        if watermark is None:
            rule = "a generator must return a watermark: an integer of 64 bits, in microseconds"
            raise InvalidFunctionError(rule, value=repr(returned))
        return watermark

    @property
    def inputs(self) -> tuple[WatermarkStrategy, ...]:
        """The strategy of each input, in order."""
        return (self,)

    @property
    def all_close(self) -> bool:
        """Whether event time advances by the clock while all inputs are idle."""
        return all(each.closes for each in self.inputs)

    @property
    def timeouts(self) -> tuple[int | None, ...]:
        """How long each input may be inactive, in milliseconds; None: for ever."""
        timeouts = (each.idleness for each in self.inputs)
        return tuple(None if each is None else each // _TICKS_PER_MS for each in timeouts)

    @property
    def is_guarded(self) -> bool:
        """Whether rows may be rejected as too far ahead."""
        return self.max_ahead is not None

    @property
    def in_state(self) -> WatermarkStrategy:
        """The strategy without the parameters that state does not depend on: guard and idleness."""
        return replace(self, max_ahead=None, idleness=None, closes=False)

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        return ", ".join(self._describe_parts())

    def _describe_parts(self) -> Iterator[str]:
        if self.column is not None:
            yield f"carried by {self.column}"
        elif self.generator is not None:
            name = getattr(self.generator, "__name__", type(self.generator).__name__)
            yield f"by {name} of the timestamps"
        else:
            yield f"latest row - {show_ticks(self.out_of_orderness)}"
        if self.idleness is not None:
            after = ", then by the clock" if self.closes else ""
            yield f"idle after {show_ticks(self.idleness)} without rows{after}"
        if self.max_ahead is not None:
            yield f"on streams without rows more than {show_ticks(self.max_ahead)} ahead"


class NoWatermarks(WatermarkStrategy):
    """No watermarks: event time stands still (Flink: noWatermarks)."""

    moves = False

    def watermark(self, max_ts: int) -> int:
        """Return the beginning of time."""
        del max_ts
        return LONG_MIN

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        return "none"


class ClockWatermarks(WatermarkStrategy):
    """The watermark of ingestion time: the current processing time."""

    in_processing_time = True

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        return "processing time, as rows arrive"


@dataclass(frozen=True)
class StageWatermarks(WatermarkStrategy):
    """The watermark of an earlier stage, as Flink's operators forward it.

    Parameters
    ----------
    stage : str
        Name of the earlier stage.
    behind : int
        How far it is held back, in ticks, because results come that long after their event time.
    """

    stage: str = ""
    behind: int = 0

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        delay = f", {show_ticks(self.behind)} behind" if self.behind else ""
        return f"that of the stage {self.stage}{delay}"


def stage_watermarks(watermarks: WatermarkStrategy) -> tuple[StageWatermarks, ...]:
    """Return the watermarks of inputs that are earlier stages."""
    return tuple(each for each in watermarks.inputs if isinstance(each, StageWatermarks))
