"""Frames: the rows of its key that an OVER aggregate of a row covers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from gpu_windows.errors import InvalidFrameError
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.vocabulary.options import Duration, is_whole, show_ticks, ticks


@dataclass(frozen=True, init=False)
class Frame(ABC):
    """The rows of a key from one distance before a row to one after it.

    Attributes
    ----------
    lower, upper : int
        Where it begins and ends relative to the row: negative is before it. LONG_MIN and LONG_MAX
        are unbounded.

    Examples
    --------
    >>> frame = gw.Range("1 hour")
    >>> isinstance(frame, gw.typing.Frame), frame.describe()
    (True, 'RANGE BETWEEN 1 h PRECEDING AND CURRENT ROW')
    """

    lower: int
    upper: int

    #: Whether distances are of time, in ticks; else they are of rows.
    in_time: ClassVar[bool]
    #: Whether distances count from the last row of the row's time, not from the row.
    counts_from_last_peer: ClassVar[bool] = False

    def _set(self, preceding: int | None, following: int | None) -> None:
        """Check and set the bounds; None is unbounded."""
        lower = LONG_MIN if preceding is None else -preceding
        upper = LONG_MAX if following is None else following
        for name, bound in (("preceding", preceding), ("following", following)):
            if bound is not None and abs(bound) >= LONG_MAX:
                rule = f"{name} must fit 64 bits; without an end it is None"
                raise InvalidFrameError(rule, value=bound)
        if lower > upper:
            rule = (
                "a frame must not end before it begins (preceding counts back, as 100 or '1 hour')"
            )
            raise InvalidFrameError(rule, value=f"{self._bound(lower)} to {self._bound(upper)}")
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)

    @property
    def has_own_row(self) -> bool:
        """Whether a row is in its own frame."""
        return self.lower <= 0 <= self.upper

    @property
    def is_unbounded_before(self) -> bool:
        """Whether it begins with the first row of the key."""
        return self.lower == LONG_MIN

    @property
    def is_unbounded(self) -> bool:
        """Whether it is all rows of the key."""
        return self.lower == LONG_MIN and self.upper == LONG_MAX

    @property
    def preceding(self) -> int:
        """How far back it reaches: rows or ticks, 0 if it begins with the row or later."""
        return max(-self.lower, 0)

    @property
    def following(self) -> int:
        """How far ahead it reaches: rows or ticks, 0 if it ends with the row or earlier."""
        return max(self.upper, 0)

    @property
    def length(self) -> int:
        """How many rows or ticks it spans, at least 2; LONG_MAX if it is unbounded."""
        return min(max(self.upper - self.lower + 1, 2), LONG_MAX)

    def describe(self) -> str:
        """Return the frame as in SQL."""
        kind = "RANGE" if self.in_time else "ROWS"
        return f"{kind} BETWEEN {self._bound(self.lower)} AND {self._bound(self.upper)}"

    def _bound(self, bound: int) -> str:
        if bound == 0:
            return "CURRENT ROW"
        word = "PRECEDING" if bound < 0 else "FOLLOWING"
        return f"{self._distance(bound)} {word}"

    def _distance(self, bound: int) -> str:
        return "UNBOUNDED" if bound in (LONG_MIN, LONG_MAX) else self._describe_distance(abs(bound))

    @abstractmethod
    def _describe_distance(self, distance: int) -> str:
        """Return a description of a distance in rows or ticks."""


@dataclass(frozen=True, init=False)
class Range(Frame):
    """The rows of a key from some time before a row to some time after it.

    Rows with the same time are in each other's frames, as in SQL. SQL: ``RANGE BETWEEN INTERVAL
    '1' MINUTE PRECEDING AND CURRENT ROW`` is ``Range("1 minute")``.

    Parameters
    ----------
    preceding : datetime.timedelta or str, optional
        How long before the row's time it begins; negative: after it. None: with the first row of
        the key.
    following : datetime.timedelta or str, optional
        How long after the row's time it ends; negative: before it. None: with the last row of the
        key, which on streams never comes.

    Raises
    ------
    InvalidFrameError
        If it ends before it begins, or a bound does not fit 64 bits.
    InvalidDurationError
        If a bound is not a duration.

    Examples
    --------
    >>> sales = gw.stream(pa.table({"shop": ["a"] * 3, "ts": [0, 30_000_000, 65_000_000]}))
    >>> timed = sales.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    >>> last_minute = timed.key_by("shop").over(gw.Range("1 minute"))
    >>> last_minute.aggregate(n=gw.count())["n"].to_pylist()
    [1, 2, 2]
    """

    in_time = True

    def __init__(
        self, preceding: Duration | None = None, following: Duration | None = "0 seconds"
    ) -> None:
        self._set(
            None if preceding is None else ticks(preceding),
            None if following is None else ticks(following),
        )

    def _describe_distance(self, distance: int) -> str:
        return show_ticks(distance)


@dataclass(frozen=True, init=False)
class Rows(Frame):
    """The rows of a key from some rows before a row to some rows after it, in order of time.

    Rows with the same time are in their order of arrival. SQL: ``ROWS BETWEEN 100 PRECEDING AND
    CURRENT ROW`` is ``Rows(100)``.

    Parameters
    ----------
    preceding : int, optional
        How many rows before the row it begins; negative: after it. None: with the first row of the
        key.
    following : int, optional
        How many rows after the row it ends; negative: before it. None: with the last row of the
        key, which on streams never comes.

    Raises
    ------
    InvalidFrameError
        If it ends before it begins, or a bound is not an integer of 64 bits.

    Examples
    --------
    >>> sales = gw.stream(pa.table({"shop": ["a"] * 3, "amount": [1, 2, 4], "ts": [0, 1, 2]}))
    >>> timed = sales.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    >>> pairs = timed.key_by("shop").over(gw.Rows(1))
    >>> pairs.aggregate(total=gw.sum("amount"))["total"].to_pylist()
    [1, 3, 6]
    """

    in_time = False

    def __init__(self, preceding: int | None = None, following: int | None = 0) -> None:
        for name, bound in (("preceding", preceding), ("following", following)):
            if bound is not None and not is_whole(bound):
                rule = f"{name} of Rows must be a whole number, or None"
                raise InvalidFrameError(rule, value=repr(bound))
        self._set(preceding, following)

    def _describe_distance(self, distance: int) -> str:
        return str(distance)


@dataclass(frozen=True, init=False)
class PeerRows(Rows):
    """The rows of a key some rows before the last row of the row's time: Flink's frame of LAG.

    Rows with the same time have the same frame.
    """

    counts_from_last_peer = True

    def describe(self) -> str:
        """Return the frame as in SQL, and where it is counted from."""
        return f"{super().describe()} of the last row of its time"


#: The tick before a row, where the rows that a rank counts end.
BEFORE_NOW = "-1 us"


def check_frame(frame: object) -> Frame:
    """Return a frame that was given as one.

    Raises
    ------
    InvalidFrameError
        If it is not a `Frame`.
    """
    if not isinstance(frame, Frame):
        rule = "over takes a frame, such as Range('1 minute') or Rows(100)"
        raise InvalidFrameError(rule, value=repr(frame))
    return frame
