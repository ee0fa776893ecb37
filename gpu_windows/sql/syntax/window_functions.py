"""Window functions of FROM and GROUP BY, as window assigners of the API."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from sqlglot import exp

import gpu_windows.vocabulary.windows as kinds
from gpu_windows.expressions.dialect import (
    Descriptor,
    NamedArgument,
    TableArgument,
    WindowFunction,
)
from gpu_windows.expressions.intervals import interval_months, interval_ticks
from gpu_windows.expressions.sql_text import errors_at, sql_error
from gpu_windows.sql.api_call import ApiCall, call_api
from gpu_windows.vocabulary.options import TICKS, show_ticks
from gpu_windows.vocabulary.windows.calendar import Period

_T = TypeVar("_T")
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
#: Parameters of `gw.CalendarWindows.of` after the size; Flink has no windows of months.
_CALENDAR: Mapping[str, tuple[str, ...]] = {
    "TUMBLE": ("offset",),
    "HOP": ("slide", "offset"),
    "CUMULATE": ("step", "offset"),
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
) -> tuple[TableArgument, exp.Column, list[exp.Expr | None]]:
    """Return the table, the time and the durations of a window function.

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
    return table, time.expressions[0], [by_name.get(name) for name in _DURATIONS[kind]]


def read_group_window(call: WindowFunction) -> tuple[exp.Column, list[exp.Expr]]:
    """Return the time and the durations of ``GROUP BY TUMBLE(time, size)``.

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
    return time, durations


def make_assigner(
    call: WindowFunction, durations: Sequence[exp.Expr | None], zone: str | None
) -> ApiCall:
    """Return the window assigner of a window function.

    Parameters
    ----------
    call : WindowFunction
    durations : sequence of sqlglot.exp.Expr or None
        See `read_window_function`.
    zone : str, optional
        Of windows of months.

    Raises
    ------
    SqlError
        If a duration is missing, or windows cannot have it.
    """
    required = [name for name in _DURATIONS[call.this] if name != "OFFSET"]
    missing = [name for name, each in zip(required, durations, strict=False) if each is None]
    if missing:
        raise sql_error(call, f"a window function must be {_SIGNATURES[call.this]}")
    some = [each for each in durations if each is not None]
    with errors_at(call):
        if call.this in _CALENDAR and any(_months(each) is not None for each in some):
            return _calendar_windows(call, some, zone)
        return _assigner_call(call.this, [interval_ticks(each) for each in some])


def check_without_gaps(call: WindowFunction, assigner: ApiCall) -> None:
    """Refuse windows of FROM that leave rows out, as Flink does; those of GROUP BY may."""
    windows = assigner.value
    if isinstance(windows, kinds.SlidingEventTimeWindows) and windows.slide > windows.size:
        rule = "HOP takes the slide before the size, and rows between windows would be lost"
        value = f"{show_ticks(windows.slide)} > {show_ticks(windows.size)}"
        raise sql_error(call, rule, value)


def _months(interval: exp.Expr) -> int | None:
    return interval_months(interval) if isinstance(interval, exp.Interval) else None


def _calendar_windows(
    call: WindowFunction, durations: Sequence[exp.Expr], zone: str | None
) -> ApiCall:
    size, *rest = _size_first(call.this, [_period(each) for each in durations])
    options = dict(zip(_CALENDAR[call.this], rest, strict=False))
    return _call_calendar(size, **options, time_zone=zone)


def calendar_call(windows: kinds.CalendarWindows) -> ApiCall:
    """Return windows that tumble as a call of the API."""
    offset = windows.offset.describe() if windows.offset.count else None
    return _call_calendar(windows.period.describe(), offset=offset, time_zone=windows.time_zone)


def _call_calendar(size: str, **options: str | None) -> ApiCall:
    some = {name: value for name, value in options.items() if value is not None}
    return call_api(kinds.CalendarWindows.of, size, **some)


def _period(interval: exp.Expr) -> str:
    """Return an interval as a period of the calendar."""
    months = _months(interval)
    if months is not None:
        return Period(months, "month").describe()
    days, rest = divmod(interval_ticks(interval), TICKS["day"])
    if rest:
        rule = "windows of months have a slide, step and offset of days or months"
        raise sql_error(interval, rule)
    return Period(days, "day").describe()


def duration_call(ticks: int) -> ApiCall:
    """Return a duration as an argument of the API."""
    return ApiCall(timedelta(microseconds=ticks), repr(show_ticks(ticks)))


def _assigner_call(name: str, lengths: Sequence[int]) -> ApiCall:
    return call_api(_ASSIGNERS[name], *map(duration_call, _size_first(name, lengths)))


def _size_first(name: str, lengths: Sequence[_T]) -> list[_T]:
    """Return the lengths of a window function in the order of the API: the size first."""
    one, *others = lengths
    return [one, *others] if name in ("TUMBLE", "SESSION") else [others[0], one, *others[1:]]


def tumbling_windows(lengths: Sequence[int]) -> ApiCall:
    """Return the windows of TUMBLE by their size, and maybe their offset, in ticks."""
    return _assigner_call("TUMBLE", lengths)


_ASSIGNERS: Mapping[str, Callable[..., Any]] = {
    "TUMBLE": kinds.TumblingEventTimeWindows.of,
    "HOP": kinds.SlidingEventTimeWindows.of,
    "CUMULATE": kinds.CumulativeEventTimeWindows.of,
    "SESSION": kinds.EventTimeSessionWindows.with_gap,
}
