"""Window functions, and the windows of GROUP BY, as assigners."""

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
from gpu_windows.expressions.intervals import ticks_of
from gpu_windows.expressions.places import placed, refused
from gpu_windows.sql.said import Said
from gpu_windows.vocabulary.options import show_ticks

#: Names of the arguments of window functions, as Flink has them; the last may be left out.
_DURATIONS: Mapping[str, tuple[str, ...]] = {
    "TUMBLE": ("SIZE", "OFFSET"),
    "HOP": ("SLIDE", "SIZE", "OFFSET"),
    "CUMULATE": ("STEP", "SIZE", "OFFSET"),
    "SESSION": ("GAP",),
}
_SHOWN = {
    "TUMBLE": "TUMBLE(TABLE t, DESCRIPTOR(time), size [, offset])",
    "HOP": "HOP(TABLE t, DESCRIPTOR(time), slide, size [, offset])",
    "CUMULATE": "CUMULATE(TABLE t, DESCRIPTOR(time), step, size [, offset])",
    "SESSION": "SESSION(TABLE t [PARTITION BY keys], DESCRIPTOR(time), gap)",
}
#: What a result of GROUP BY says of its window, to the column that it is.
AUXILIARY = {
    f"{kind}_{what}": column
    for kind in ("TUMBLE", "HOP", "SESSION")
    for what, column in (
        ("START", "window_start"),
        ("END", "window_end"),
        ("ROWTIME", "window_time"),
    )
}


def function_arguments(
    call: WindowFunction,
) -> tuple[TableArgument, exp.Column, Said]:
    """Return the table of a window function, its time and its windows.

    Raises
    ------
    SqlError
        If arguments are not as Flink has them.
    """
    kind = call.this
    places = ("DATA", "TIMECOL", *_DURATIONS[kind])
    given: dict[str, exp.Expr] = {}
    for place, argument in enumerate(call.expressions):
        named = isinstance(argument, NamedArgument)
        name = argument.this if named else places[place] if place < len(places) else None
        if name not in places or name in given:
            raise refused(call, f"a window function is {_SHOWN[kind]}")
        given[name] = argument.expression if named else argument
    table, time = given.get("DATA"), given.get("TIMECOL")
    described = isinstance(time, Descriptor) and [*map(type, time.expressions)] == [exp.Column]
    if not isinstance(table, TableArgument) or not described:
        raise refused(call, f"a window function is {_SHOWN[kind]}")
    assert time is not None
    assigner = _assigner(call, [given.get(name) for name in _DURATIONS[kind]])
    return table, time.expressions[0], assigner


def group_window(call: WindowFunction) -> tuple[exp.Column, Said]:
    """Return the time and the windows of ``GROUP BY TUMBLE(time, size)``.

    Raises
    ------
    SqlError
        If arguments are not as Flink has them.
    """
    time, *durations = call.expressions or [exp.Null()]
    if call.this == "CUMULATE" or not isinstance(time, exp.Column):
        rule = "GROUP BY takes TUMBLE(time, size), HOP(time, slide, size) or SESSION(time, gap)"
        raise refused(call, rule)
    wanted = len(_DURATIONS[call.this]) - (call.this != "SESSION")
    if len(durations) != wanted or any(isinstance(each, NamedArgument) for each in durations):
        names = ", ".join(("time", *_DURATIONS[call.this][:wanted])).lower()
        raise refused(call, f"in GROUP BY it is {call.this}({names})")
    return time, _assigner(call, durations)


def _assigner(call: WindowFunction, durations: Sequence[exp.Expr | None]) -> Said:
    required = [name for name in _DURATIONS[call.this] if name != "OFFSET"]
    missing = [name for name, each in zip(required, durations, strict=False) if each is None]
    if missing:
        raise refused(call, f"a window function is {_SHOWN[call.this]}")
    lengths = [ticks_of(each) for each in durations if each is not None]
    with placed(call):
        return _ASSIGNERS[call.this](lengths)


def duration(ticks: int) -> Said:
    """Return a duration as the API takes it."""
    return Said(timedelta(microseconds=ticks), repr(show_ticks(ticks)))


def _of(kind: Any, method: str, lengths: Sequence[int]) -> Said:
    durations = [*map(duration, lengths)]
    value = getattr(kind, method)(*(each.value for each in durations))
    text = ", ".join(each.text for each in durations)
    return Said(value, f"gw.{kind.__name__}.{method}({text})")


def _hop(lengths: Sequence[int]) -> Said:
    slide, size, *offset = lengths
    return _of(kinds.SlidingEventTimeWindows, "of", (size, slide, *offset))


def _cumulate(lengths: Sequence[int]) -> Said:
    step, size, *offset = lengths
    return _of(kinds.CumulativeEventTimeWindows, "of", (size, step, *offset))


_ASSIGNERS: Mapping[str, Callable[[Sequence[int]], Said]] = {
    "TUMBLE": lambda lengths: _of(kinds.TumblingEventTimeWindows, "of", lengths),
    "HOP": _hop,
    "CUMULATE": _cumulate,
    "SESSION": lambda lengths: _of(kinds.EventTimeSessionWindows, "with_gap", lengths),
}
