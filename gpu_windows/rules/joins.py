"""Joins in time: which rows may still meet, and which is nearest."""

from __future__ import annotations

from gpu_windows.rules.ticks import LONG_MAX, LONG_MIN, Tick

#: Which row is nearest in time: the latest one up to then, the earliest one from then on, either.
BEFORE = 0
AFTER = 1
EITHER = 2

#: The first and the last time of a row of a temporal join: how far apart two are fits int64.
VERSIONED_TICKS = (-(LONG_MAX // 2), LONG_MAX // 2)


def add_saturating(ts: int, by: int) -> int:
    """Return ``ts + by``, clamped to int64."""
    if by > 0:
        return LONG_MAX if ts > LONG_MAX - by else ts + by
    return LONG_MIN if ts < LONG_MIN - by else ts + by


def waits(ts: Tick, reach: int, clock: int) -> Tick:
    """Whether a partner of a row may still come: one that is ``reach`` ticks later, on time."""
    return ts + reach > clock


def sql_clock(watermark: int) -> int:
    """Time of an interval join in Flink's SQL: it begins at the epoch.

    Source: org.apache.flink.table.runtime.operators.join.interval.RowTimeIntervalJoin.
    """
    return max(watermark, 0)


def oldest_version(valid_for: int | None) -> int:
    """Return how much later than a row the oldest version is that is valid for it: 0, or less.

    ``valid_for``: for how long a version is one; None: until the next one.
    """
    return -LONG_MAX if valid_for is None else 1 - valid_for


def end_of_version(ts: Tick, valid_for: int) -> Tick:
    """Return the last tick at which a version of a time is valid."""
    return ts + valid_for - 1


def precedes(code: int, ts: int, other_code: int, other_ts: int) -> bool:
    """Whether (code, ts) sorts before (other_code, other_ts)."""
    return code < other_code or (code == other_code and ts < other_ts)


def is_earlier_nearer(ts: int, earlier: int, later: int) -> bool:
    """Whether ``earlier`` is as near to ``ts`` as ``later``, or nearer.

    Distances may not fit into int64; the middle of the two, rounded down, always does.
    Source: Warren, "Hacker's Delight" (2002), 2-5.
    """
    return ts <= (earlier & later) + ((earlier ^ later) >> 1)
