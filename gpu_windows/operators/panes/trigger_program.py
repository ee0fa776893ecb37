"""Compiles triggers and evictors to arrays for kernels (`gpu_windows.rules.window_operator`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.rules.window_operator import layout, triggers
from gpu_windows.rules.window_operator.layout import NODE, Program, Settings
from gpu_windows.vocabulary.deltas import Delta
from gpu_windows.vocabulary.evictors import CountEvictor, DeltaEvictor, Evictor, TimeEvictor
from gpu_windows.vocabulary.triggers import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountTrigger,
    DeltaTrigger,
    EarlyAndLateTrigger,
    EndOfStreamTrigger,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeoutTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    Trigger,
)

_DISTANCES = {
    "old_minus_new": layout.OLD_MINUS_NEW,
    "new_minus_old": layout.NEW_MINUS_OLD,
    "abs_diff": layout.ABS_DIFF,
}

#: The kind of the node of a trigger.
_KINDS: Mapping[type[Trigger], int] = {
    EventTimeTrigger: triggers.EVENT_TIME,
    EndOfStreamTrigger: triggers.END_OF_STREAM,
    ProcessingTimeTrigger: triggers.PROCESSING_TIME,
    ContinuousEventTimeTrigger: triggers.CONTINUOUS_EVENT_TIME,
    ContinuousProcessingTimeTrigger: triggers.CONTINUOUS_PROCESSING_TIME,
    CountTrigger: triggers.COUNT,
    DeltaTrigger: triggers.DELTA,
    NeverTrigger: triggers.NEVER,
    PurgingTrigger: triggers.PURGING,
    EarlyAndLateTrigger: triggers.EARLY_AND_LATE,
    ProcessingTimeoutTrigger: triggers.TIMEOUT,
}
#: Triggers that a row may make fire before their window has ended: by themselves, without parts.
_ACTIVE = frozenset(
    {
        triggers.COUNT,
        triggers.DELTA,
        triggers.CONTINUOUS_PROCESSING_TIME,
        triggers.PROCESSING_TIME,
        triggers.TIMEOUT,
    }
)


def delta_columns(query: WindowQuery) -> tuple[str, ...]:
    """Return the columns that deltas compare, each once; a program refers to them by index."""
    parts: Sequence[object] = [*query.trigger.walk(), query.evictor]
    deltas = (getattr(part, "delta", None) for part in parts)
    return tuple(dict.fromkeys(d.column for d in deltas if isinstance(d, Delta)))


def fires_only_at_end(trigger: Trigger) -> bool:
    """Whether no row makes a trigger fire before its window has ended."""
    return not any(_KINDS[type(part)] in _ACTIVE for part in trigger.walk())


def program_of(query: WindowQuery) -> Program:
    """Return the trigger of a query, which is made of built-in ones, as a program."""
    columns = delta_columns(query)
    nodes: list[list[int]] = []
    thresholds: list[float] = []

    def add(trigger: Trigger, timeout: int | None = None) -> int:
        """Append a trigger; ``timeout``: the node of a timeout that it is within."""
        at = len(nodes)
        first, second, threshold = _numbers_of(trigger, columns)
        times_out = isinstance(trigger, ProcessingTimeoutTrigger)
        keeper = timeout if times_out and timeout is not None else at
        nodes.append([_KINDS[type(trigger)], 0, first, second, keeper])
        thresholds.append(threshold)
        if isinstance(trigger, EarlyAndLateTrigger):
            for place, part in ((layout.FIRST, trigger.early), (layout.SECOND, trigger.late)):
                nodes[at][place] = -1 if part is None else add(part)
        else:
            for part in trigger.parts:
                add(part, keeper if times_out else timeout)
        nodes[at][layout.AFTER] = len(nodes)
        return at

    add(query.trigger)
    assert all(len(node) == NODE for node in nodes)
    return Program(np.array(nodes, np.int64).reshape(-1), np.array(thresholds, np.float64))


def _numbers_of(trigger: Trigger, columns: Sequence[str]) -> tuple[int, int, float]:
    """Return two numbers of a node, and a threshold."""
    match trigger:
        case ContinuousEventTimeTrigger(ticks) | ContinuousProcessingTimeTrigger(ticks):
            return ticks, 0, 0.0
        case CountTrigger(limit):
            return limit, 0, 0.0
        case DeltaTrigger(threshold, delta):
            return columns.index(delta.column), _DISTANCES[delta.kind], float(threshold)
        case EarlyAndLateTrigger():
            return -1, -1, 0.0
        case ProcessingTimeoutTrigger(_, timeout, resets, clears):
            return timeout, triggers.RESETS * resets | triggers.CLEARS * clears, 0.0
    return 0, 0, 0.0


def settings_of(query: WindowQuery) -> Settings:
    """Return the settings that are the same in all calls of a machine."""
    assigner = query.assigner
    return Settings(
        watermark=0,
        processing_time=0,
        advance=layout.ELEMENT,
        until=0,
        is_end=0,
        takes_all=int(query.keeps_rows or query.merges),
        is_event_time=int(assigner.is_event_time),
        **_evictor(query.evictor, delta_columns(query)),
        lateness=query.allowed_lateness if assigner.is_event_time else 0,
        ticks_per_ms=getattr(assigner, "ticks_per_ms", 1),
    )


def _evictor(evictor: Evictor | None, columns: Sequence[str]) -> dict[str, Any]:
    kind, limit, distance, threshold = layout.NO_EVICTOR, 0, 0, 0.0
    match evictor:
        case None:
            pass
        case CountEvictor(_, limit):
            kind = layout.BY_COUNT
        case TimeEvictor(_, limit):
            kind = layout.BY_TIME
        case DeltaEvictor(_, threshold, delta):
            kind, limit = layout.BY_DELTA, columns.index(delta.column)
            distance = _DISTANCES[delta.kind]
        case _:
            raise AssertionError(f"{type(evictor).__name__} is not a built-in evictor")
    after = getattr(evictor, "evict_after_function", False)
    return {
        "evictor": kind,
        "after": int(after),
        "limit": limit,
        "distance": distance,
        "threshold": float(threshold),
    }
