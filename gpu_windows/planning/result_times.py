"""The event time of results, for a query over these results."""

from __future__ import annotations

from dataclasses import dataclass

#: Names of the columns with the event time of results that have no time column of their own: of
#: results of windows, and of others.
WINDOW_TIME, RESULT_TIME = "window_time", "result_time"


@dataclass(frozen=True)
class ResultTimes:
    """Which columns have the event time of results.

    Parameters
    ----------
    name : str
        The column with the event time.
    end : str, optional
        The column with the end of a window, if the time is the last tick before it (Flink:
        ``window.maxTimestamp()``).
    sides : tuple of str
        The columns with the times of both rows of a pair, if the time is the greater one.
    behind : int
        How long after their event time results may come, in ticks; holds the watermark back.
    """

    name: str
    end: str | None = None
    sides: tuple[str, ...] = ()
    behind: int = 0
