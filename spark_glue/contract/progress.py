"""The watermark after a micro-batch, and when the clock makes the next one due."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

from gpu_windows.planning.query import Query
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.vocabulary.watermarks import CombinedWatermark, InputProgress

_TICKS_A_MS = 1_000
#: A time of the clock that never comes.
_NEVER_MS = 1 << 62


def to_ticks(ms: int) -> int:
    """Return a time of the clock in ticks."""
    return ms * _TICKS_A_MS


def _first_ms(tick: int) -> int:
    """Return the first time of the clock that is at least a tick."""
    return min(-(-tick // _TICKS_A_MS), _NEVER_MS)


def follows_clock(query: Query) -> bool:
    """Whether the clock alone, without rows, can advance a query."""
    watermarks = query.watermarks
    becomes_idle = any(timeout is not None for timeout in watermarks.timeouts)
    return query.uses_processing_time or watermarks.in_processing_time or becomes_idle


def read_combined_watermark(query: Query, found: Mapping[str, Any]) -> CombinedWatermark:
    """Read the combined watermark of a query; ``found``: what `to_json` returned, or empty.

    An input is not idle if its timeout was removed when the query was started again.
    """
    timeouts = query.watermarks.timeouts
    if not found:
        return CombinedWatermark((InputProgress(),) * len(timeouts))
    combined = from_json(found)
    inputs = tuple(
        InputProgress(each.watermark) if timeout is None else each
        for each, timeout in zip(combined.inputs, timeouts, strict=True)
    )
    return replace(combined, inputs=inputs)


def to_json(combined: CombinedWatermark) -> dict[str, Any]:
    """Return a combined watermark as a commit has it."""
    return asdict(combined)


def from_json(found: Mapping[str, Any]) -> CombinedWatermark:
    """Read what `to_json` returned."""
    inputs = tuple(InputProgress(**each) for each in found["inputs"])
    return CombinedWatermark(**{**found, "inputs": inputs})


def watermark_after(
    query: Query, combined: CombinedWatermark, previous: int | None, now_ms: int
) -> int | None:
    """Return the watermark after a micro-batch, in ticks; None before the first one.

    Parameters
    ----------
    query : Query
    combined : CombinedWatermark
        How far the inputs are after it.
    previous : int, optional
        The watermark before it: it never goes back.
    now_ms : int
        The time of the micro-batch, in milliseconds since 1970.
    """
    allowed = _watermark_of(query, combined, now_ms)
    if allowed is None or previous is None:
        return previous if allowed is None else allowed
    return max(allowed, previous)


def _watermark_of(query: Query, combined: CombinedWatermark, now_ms: int) -> int | None:
    watermarks = query.watermarks
    if watermarks.in_processing_time:
        return to_ticks(now_ms) - 1
    if combined.watermark == LONG_MIN:
        return None
    if combined.idle_since is None or not watermarks.all_close:
        return combined.watermark
    return min(combined.watermark + to_ticks(now_ms - combined.idle_since), LONG_MAX)


def next_call_ms(
    query: Query,
    combined: CombinedWatermark,
    next_times: Iterable[tuple[int | None, int | None]],
    now_ms: int,
) -> int | None:
    """Return the clock time at which the next micro-batch is due without rows, in milliseconds.

    Parameters
    ----------
    query, combined, now_ms
        See `watermark_after`.
    next_times : iterable of (int or None, int or None)
        Of each shard: watermark and processing time of the next timer, in ticks.

    Returns
    -------
    int or None
        None: nothing is due until rows arrive.
    """
    if not follows_clock(query):
        return None
    watermarks = query.watermarks
    events, processing = zip(*next_times, strict=True)
    calls = [_first_ms(each) for each in processing if each is not None]
    idle_check = combined.next_check(now_ms, watermarks.timeouts)
    calls += [] if idle_check is None else [idle_check]
    event = min((each for each in events if each is not None), default=None)
    if event is not None and watermarks.in_processing_time:
        calls.append(_first_ms(event + 1))
    elif event is not None and combined.idle_since is not None and watermarks.all_close:
        calls.append(combined.idle_since + _first_ms(event - combined.watermark))
    return max(min(calls), now_ms + 1) if calls else None
