"""Queries whose windows are counts of rows."""

from __future__ import annotations

from typing import Any

from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.vocabulary.evictors import CountEvictor
from gpu_windows.vocabulary.triggers import CountTrigger, PurgingTrigger
from gpu_windows.vocabulary.windows import GlobalWindows
from tests.planning.queries import query


def count_window(size: int, slide: int | None, **changes: Any) -> WindowQuery:
    if slide is None:
        parts: dict[str, Any] = {"trigger": PurgingTrigger(CountTrigger(size))}
    else:
        parts = {"trigger": CountTrigger(slide), "evictor": CountEvictor.of(size)}
    return query(GlobalWindows(), firing_columns=True, **parts, **changes)
