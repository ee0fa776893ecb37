"""What Flink refuses, as our errors and as rows that are given back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from gpu_windows.errors import (
    InvalidDurationError,
    InvalidFunctionError,
    InvalidPatternError,
    InvalidTriggerError,
    InvalidWindowError,
    QueryError,
)
from gpu_windows.rules import INVALID_SESSION_GAP, REASONS
from tests.conformance.scenario import FlinkError

Ours = TypeVar("Ours")

#: Flink's refusals: (class, beginning of the message) to our error.
REFUSALS: dict[tuple[str, str], type[QueryError]] = {
    (
        "java.lang.IllegalArgumentException",
        "TumblingEventTimeWindows parameters must satisfy",
    ): InvalidWindowError,
    (
        "java.lang.IllegalArgumentException",
        "SlidingEventTimeWindows parameters must satisfy",
    ): InvalidWindowError,
    (
        "java.lang.IllegalArgumentException",
        "The allowed lateness cannot be negative",
    ): InvalidDurationError,
    (
        "java.lang.IllegalArgumentException",
        "EventTimeSessionWindows parameters must satisfy",
    ): InvalidWindowError,
    (
        "java.lang.UnsupportedOperationException",
        "A merging window assigner cannot be used with a trigger that does not support merging",
    ): InvalidTriggerError,
    (
        "java.lang.UnsupportedOperationException",
        "Per-window state is not allowed when using merging windows",
    ): InvalidFunctionError,
    (
        "org.apache.flink.util.FlinkRuntimeException",
        "Could not skip to",
    ): InvalidPatternError,
    (
        "java.lang.ClassCastException",
        "class org.apache.flink.streaming.api.windowing.windows.GlobalWindow cannot be cast",
    ): InvalidTriggerError,
}

#: Values of a row at which Flink throws, and for which a row is given back here: (class, beginning
#: of the message) to the reason.
REJECTIONS: dict[tuple[str, str], str] = {
    (
        "java.lang.IllegalArgumentException",
        "Dynamic session time gap must satisfy",
    ): REASONS[INVALID_SESSION_GAP],
}


def refusal_of(error: FlinkError) -> type[QueryError]:
    """Return our class for a refusal of Flink's; `QueryError` for one that is not in the table."""
    return _look_up(REFUSALS, error) or QueryError


def rejection_of(error: FlinkError) -> str | None:
    """Return the reason with which a row is given back here where Flink throws; None if none is."""
    return _look_up(REJECTIONS, error)


def _look_up(table: Mapping[tuple[str, str], Ours], error: FlinkError) -> Ours | None:
    for (kind, beginning), ours in table.items():
        if kind == error.kind and error.message.startswith(beginning):
            return ours
    return None
