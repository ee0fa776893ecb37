"""When the results of a query happen, for a query of these results."""

from __future__ import annotations

from dataclasses import dataclass

#: Names of the columns with the time of results, where they have none of their own: of results of
#: windows, and of others.
WINDOW_TIME, RESULT_TIME = "window_time", "result_time"


@dataclass(frozen=True)
class ResultTimes:
    """When results happen.

    Parameters
    ----------
    name : str
        The column that tells it.
    end : str, optional
        The column with the end of a window, if it is made of that: a result happens at the last
        tick before (Flink: ``window.maxTimestamp()``).
    sides : tuple of str
        The columns with the times of both rows of a pair, if it is made of these: the greater.
    behind : int
        How long after their time results may come, in ticks: the watermark is held back by it.
    """

    name: str
    end: str | None = None
    sides: tuple[str, ...] = ()
    behind: int = 0
