"""The watermark of a query's micro-batches, and when something is due by the clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

from gpu_windows.query.base import Query
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.spark_glue.contract.times import first_ms, follows_clock, to_ticks
from gpu_windows.watermarks import InputProgress, Valve


def read_valve(query: Query, found: Mapping[str, Any]) -> Valve:
    """Read how far the inputs of a query are; ``found``: what `to_json` returned, or empty.

    An input that may not be idle any more, since the query was started again, is not.
    """
    timeouts = query.watermarks.timeouts
    if not found:
        return Valve((InputProgress(),) * len(timeouts))
    valve = from_json(found)
    inputs = tuple(
        InputProgress(each.watermark) if timeout is None else each
        for each, timeout in zip(valve.inputs, timeouts, strict=True)
    )
    return replace(valve, inputs=inputs)


def to_json(valve: Valve) -> dict[str, Any]:
    """Return how far inputs are, as a commit has it."""
    return asdict(valve)


def from_json(found: Mapping[str, Any]) -> Valve:
    """Read what `to_json` returned."""
    inputs = tuple(InputProgress(**each) for each in found["inputs"])
    return Valve(**{**found, "inputs": inputs})


def watermark_after(query: Query, valve: Valve, reached: int | None, now_ms: int) -> int | None:
    """Return the watermark after a micro-batch, in ticks; None if there is none.

    Parameters
    ----------
    query : Query
    valve : Valve
        How far the inputs are after it.
    reached : int, optional
        The watermark before it: it never goes back.
    now_ms : int
        The time of the micro-batch, in milliseconds since 1970.
    """
    allowed = _watermark_of(query, valve, now_ms)
    if allowed is None or reached is None:
        return reached if allowed is None else allowed
    return max(allowed, reached)


def _watermark_of(query: Query, valve: Valve, now_ms: int) -> int | None:
    watermarks = query.watermarks
    if watermarks.in_processing_time:
        return to_ticks(now_ms) - 1
    if valve.watermark == LONG_MIN:
        return None
    if valve.idle_since is None or not watermarks.all_close:
        return valve.watermark
    return min(valve.watermark + to_ticks(now_ms - valve.idle_since), LONG_MAX)


def next_call_ms(
    query: Query,
    valve: Valve,
    next_times: Iterable[tuple[int | None, int | None]],
    now_ms: int,
) -> int | None:
    """Return when something is due by the clock after a micro-batch, in milliseconds.

    Parameters
    ----------
    query, valve, now_ms
        See `watermark_after`.
    next_times : iterable of (int or None, int or None)
        Of each shard: watermark and processing time at which something is due, in ticks.

    Returns
    -------
    int or None
        None: nothing is, until rows come.
    """
    if not follows_clock(query):
        return None
    watermarks = query.watermarks
    events, processing = zip(*next_times, strict=True)
    calls = [first_ms(each) for each in processing if each is not None]
    look = valve.next_look(now_ms, watermarks.timeouts)
    calls += [] if look is None else [look]
    event = min((each for each in events if each is not None), default=None)
    if event is not None and watermarks.in_processing_time:
        calls.append(first_ms(event + 1))
    elif event is not None and valve.idle_since is not None and watermarks.all_close:
        calls.append(valve.idle_since + first_ms(event - valve.watermark))
    return max(min(calls), now_ms + 1) if calls else None
