"""Conditions of an assigner on the values of a row, checked before it is put into windows."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_windows.rules import INVALID_SESSION_GAP, LONG_MAX


@dataclass(frozen=True)
class DurationCheck:
    """A duration in a column of the rows must be positive, and its window must fit int64.

    A row that breaks it is rejected, and is in no window; the query continues.

    Parameters
    ----------
    column : str
        Microseconds (an integer) or INTERVAL DAY TO SECOND.
    last : int
        The greatest tick at which its window may end.
    of_event_time : bool
        Whether its window begins at the time of the row; else at the current processing time.
    status : int
        The status of rows that break it: one of `gpu_windows.rules.REASONS`.
    """

    column: str
    last: int = LONG_MAX
    of_event_time: bool = True
    status: int = INVALID_SESSION_GAP
