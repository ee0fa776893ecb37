"""Whether a window or a row is late, and what becomes of a row."""

from __future__ import annotations

from gpu_windows.rules.slicing import Grid, end_of, is_gap, last_window
from gpu_windows.rules.ticks import LONG_MAX

ACCEPTED = 0
LATE = 1
GAP = 2
OUT_OF_RANGE = 3
NULL = 4


def cleanup_time(max_timestamp: int, lateness: int) -> int:
    """Tick at which a window is dropped: ``max_timestamp + lateness``, or LONG_MAX on overflow."""
    if max_timestamp > LONG_MAX - lateness:
        return LONG_MAX
    return max_timestamp + lateness


def is_late(max_timestamp: int, lateness: int, watermark: int) -> bool:
    """Whether a window is already cleaned up (Flink: isWindowLate)."""
    return cleanup_time(max_timestamp, lateness) <= watermark


def status_of(ts: int, index: int, lateness: int, watermark: int, grid: Grid) -> int:
    """Return ACCEPTED, LATE or GAP for a row of slice ``index``.

    A row is late if its last window is; a row in a gap is late once ``ts + lateness <=
    watermark`` (Flink: isElementLate) and vanishes otherwise, so it is counted as GAP.
    """
    if is_gap(index, grid):
        return LATE if is_late(ts, lateness, watermark) else GAP
    latest = end_of(last_window(index, grid), grid) - 1
    return LATE if is_late(latest, lateness, watermark) else ACCEPTED
