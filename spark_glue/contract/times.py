"""Converts between the clock of micro-batches, in milliseconds, and ticks."""

from __future__ import annotations

from gpu_windows.planning.query import Query

_TICKS_A_MS = 1_000
#: A time of the clock that never comes.
_NEVER_MS = 1 << 62


def to_ticks(ms: int) -> int:
    """Return a time of the clock in ticks."""
    return ms * _TICKS_A_MS


def first_ms(tick: int) -> int:
    """Return the first time of the clock that is at least a tick."""
    return min(-(-tick // _TICKS_A_MS), _NEVER_MS)


def follows_clock(query: Query) -> bool:
    """Whether the clock alone, without rows, can advance a query."""
    watermarks = query.watermarks
    becomes_idle = any(timeout is not None for timeout in watermarks.timeouts)
    return query.uses_processing_time or watermarks.in_processing_time or becomes_idle
