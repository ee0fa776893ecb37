"""Window functions of FROM and GROUP BY, as window assigners of the API."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from sqlglot import exp

import gpu_windows.vocabulary.windows as kinds
from gpu_windows.expressions.dialect import (
    Descriptor,
    NamedArgument,
    TableArgument,
    WindowFunction,
)
from gpu_windows.expressions.intervals import interval_ticks
from gpu_windows.expressions.sql_text import errors_at, sql_error
from gpu_windows.sql.api_call import ApiCall
from gpu_windows.vocabulary.options import show_ticks

#: Parameters of window functions, by Flink's names; OFFSET is optional.
_DURATIONS: Mapping[str, tuple[str, ...]] = {
    "TUMBLE": ("SIZE", "OFFSET"),
    "HOP": ("SLIDE", "SIZE", "OFFSET"),
    "CUMULATE": ("STEP", "SIZE", "OFFSET"),
    "SESSION": ("GAP",),
}
_SIGNATURES = {
    "TUMBLE": "TUMBLE(TABLE t, DESCRIPTOR(time), size [, offset])",
    "HOP": "HOP(TABLE t, DESCRIPTOR(time), slide, size [, offset])",
    "CUMULATE": "CUMULATE(TABLE t, DESCRIPTOR(time), step, size [, offset])",
    "SESSION": "SESSION(TABLE t [PARTITION BY keys], DESCRIPTOR(time), gap)",
}
#: Functions in results of GROUP BY that return a column of the window.
AUXILIARY_FUNCTIONS = {
    f"{kind}_{what}": column
    for kind in ("TUMBLE", "HOP", "SESSION")
    for what, column in (
        ("START", "window_start"),
        ("END", "window_end"),
        ("ROWTIME", "window_time"),
    )
}


def read_window_function(
    call: WindowFunction,
) -> tuple[TableArgument, exp.Column, ApiCall]:
    """Return the table, the time and the window assigner of a window function.

    Raises
    ------
    SqlError
        If arguments do not have Flink's signature.
    """
    kind = call.this
    parameters = ("DATA", "TIMECOL", *_DURATIONS[kind])
    by_name: dict[str, exp.Expr] = {}
    for index, argument in enumerate(call.expressions):
        is_named = isinstance(argument, NamedArgument)
        name = argument.this if is_named else parameters[index] if index < len(parameters) else None
        if name not in parameters or name in by_name:
            raise sql_error(call, f"a window function must be {_SIGNATURES[kind]}")
        by_name[name] = argument.expression if is_named else argument
    table, time = by_name.get("DATA"), by_name.get("TIMECOL")
    has_time = isinstance(time, Descriptor) and [*map(type, time.expressions)] == [exp.Column]
    if not isinstance(table, TableArgument) or not has_time:
        raise sql_error(call, f"a window function must be {_SIGNATURES[kind]}")
    assert time is not None
    assigner = _assigner(call, [by_name.get(name) for name in _DURATIONS[kind]])
    return table, time.expressions[0], assigner


def read_group_window(call: WindowFunction) -> tuple[exp.Column, ApiCall]:
    """Return the time and the window assigner of ``GROUP BY TUMBLE(time, size)``.

    Raises
    ------
    SqlError
        If arguments do not have Flink's signature.
    """
    time, *durations = call.expressions or [exp.Null()]
    if call.this == "CUMULATE" or not isinstance(time, exp.Column):
        rule = "GROUP BY takes TUMBLE(time, size), HOP(time, slide, size) or SESSION(time, gap)"
        raise sql_error(call, rule)
    wanted = len(_DURATIONS[call.this]) - (call.this != "SESSION")
    if len(durations) != wanted or any(isinstance(each, NamedArgument) for each in durations):
        names = ", ".join(("time", *_DURATIONS[call.this][:wanted])).lower()
        raise sql_error(call, f"in GROUP BY this must be {call.this}({names})")
    return time, _assigner(call, durations)


def _assigner(call: WindowFunction, durations: Sequence[exp.Expr | None]) -> ApiCall:
    required = [name for name in _DURATIONS[call.this] if name != "OFFSET"]
    missing = [name for name, each in zip(required, durations, strict=False) if each is None]
    if missing:
        raise sql_error(call, f"a window function must be {_SIGNATURES[call.this]}")
    lengths = [interval_ticks(each) for each in durations if each is not None]
    with errors_at(call):
        return _ASSIGNERS[call.this](lengths)


def duration_call(ticks: int) -> ApiCall:
    """Return a duration as an argument of the API."""
    return ApiCall(timedelta(microseconds=ticks), repr(show_ticks(ticks)))


def _assigner_call(kind: Any, method: str, lengths: Sequence[int]) -> ApiCall:
    durations = [*map(duration_call, lengths)]
    value = getattr(kind, method)(*(each.value for each in durations))
    text = ", ".join(each.code for each in durations)
    return ApiCall(value, f"gw.{kind.__name__}.{method}({text})")


def _hop(lengths: Sequence[int]) -> ApiCall:
    slide, size, *offset = lengths
    return _assigner_call(kinds.SlidingEventTimeWindows, "of", (size, slide, *offset))


def _cumulate(lengths: Sequence[int]) -> ApiCall:
    step, size, *offset = lengths
    return _assigner_call(kinds.CumulativeEventTimeWindows, "of", (size, step, *offset))


def tumbling_windows(lengths: Sequence[int]) -> ApiCall:
    """Return the windows of TUMBLE by their size, and maybe their offset, in ticks."""
    return _assigner_call(kinds.TumblingEventTimeWindows, "of", lengths)


_ASSIGNERS: Mapping[str, Callable[[Sequence[int]], ApiCall]] = {
    "TUMBLE": tumbling_windows,
    "HOP": _hop,
    "CUMULATE": _cumulate,
    "SESSION": lambda lengths: _assigner_call(kinds.EventTimeSessionWindows, "with_gap", lengths),
}
