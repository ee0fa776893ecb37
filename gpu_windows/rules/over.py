"""When Flink forgets the rows of a frame of time."""

from __future__ import annotations


def must_reach(ts: int, before: int) -> int:
    """Return the time that the next clean-up of a key must have, for a row with frames like this.

    Parameters
    ----------
    ts : int
        Of the row.
    before : int
        How far back a frame reaches, in ticks.
    """
    return ts + before + 1


def cleanup_timer(ts: int, before: int) -> int:
    """Return the time of the clean-up that a row asks for, where the next one is too early.

    Source: org.apache.flink.table.runtime.operators.over.RowTimeRangeBoundedPrecedingFunction,
    ``registerCleanupTimer``: half a frame later than it must be, so that it is asked for seldom.
    """
    return ts + before + before // 2 + 1
