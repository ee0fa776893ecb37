"""Whether a window or a row is late, what becomes of a row, and when Flink forgets it."""

from __future__ import annotations

from gpu_windows.rules.slicing import Grid, is_gap, last_window_fired, start_of
from gpu_windows.rules.ticks import LONG_MAX, LONG_MIN

ACCEPTED = 0
LATE = 1
GAP = 2
OUT_OF_RANGE = 3
NULL = 4
INVALID_SESSION_GAP = 5

#: Why a row is in no window, by status: the name of its counter and, but for GAP, of the reason
#: with which it is given back.
REASONS = {
    LATE: "late",
    GAP: "gap",
    OUT_OF_RANGE: "out_of_range_timestamp",
    NULL: "null_timestamp",
    INVALID_SESSION_GAP: "invalid_session_gap",
}


def cleanup_time(max_timestamp: int, lateness: int) -> int:
    """Tick at which a window is dropped: ``max_timestamp + lateness``, or LONG_MAX on overflow."""
    if max_timestamp > LONG_MAX - lateness:
        return LONG_MAX
    return max_timestamp + lateness


def is_late(max_timestamp: int, lateness: int, watermark: int) -> bool:
    """Whether a window is already cleaned up (Flink: isWindowLate)."""
    return cleanup_time(max_timestamp, lateness) <= watermark


def first_tick_on_time(lateness: int, watermark: int, grid: Grid) -> int:
    """Tick from which on rows are not late; all rows before it are. Not compiled: made once a call.

    A row is late if its last window is; a row in a gap is late once ``ts + lateness <= watermark``
    (Flink: isElementLate). The windows that are not late begin with the one after the last that
    was complete ``lateness`` ticks ago; before its start a row may still be in a gap. Of windows
    without gaps, that start is never after ``watermark - lateness + 1``.

    Returns
    -------
    int
        Within int64: LONG_MIN if no row is late, LONG_MAX if all are (no usable tick is that).
    """
    if watermark == LONG_MAX:
        return LONG_MAX
    over = watermark - lateness
    start: int = start_of(last_window_fired(over, grid) + 1, grid)
    return max(min(start, over + 1), LONG_MIN)


def status_of(ts: int, index: int, first_on_time: int, grid: Grid) -> int:
    """Return ACCEPTED, LATE or GAP for a row of slice ``index``.

    ``first_on_time`` is of `first_tick_on_time`. A row in a gap that is not late vanishes, so it is
    counted as GAP.
    """
    if ts < first_on_time:
        return LATE
    return GAP if is_gap(index, grid) else ACCEPTED


# ---- rows of frames of time


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
