"""INTERVAL literals as durations in microseconds."""

from __future__ import annotations

import re
from fractions import Fraction

from sqlglot import exp

from gpu_windows.expressions.sql_text import sql_error
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.vocabulary.options import TICKS

_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?", re.ASCII)
_UNITS = ("day", "hour", "minute", "second")
#: Exclusive upper bounds of the units after the first.
_BOUNDS = {"hour": 24, "minute": 60, "second": 60}
_MAX_CHARACTERS = 40


def interval_ticks(interval: exp.Expr) -> int:
    """Return a duration in microseconds: ``INTERVAL '10' MINUTES``, ``'1:30' MINUTE TO SECOND``.

    Raises
    ------
    SqlError
        If it is not a literal duration, or one of months, which have no fixed length.
    """
    ticks = _ticks(interval)
    if not LONG_MIN < ticks <= LONG_MAX:
        raise sql_error(interval, "a duration must fit 64 bits of microseconds")
    return ticks


_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_YEARS_MONTHS = re.compile(r"([+-]?)(\d+)-(\d+)", re.ASCII)


def interval_months(interval: exp.Interval) -> int | None:
    """Return the months of ``INTERVAL '1' YEAR`` or ``'1-2' YEAR TO MONTH``; None for durations.

    Raises
    ------
    SqlError
        If the number of months is not a whole literal.
    """
    unit, (sign, value) = interval.args.get("unit"), _signed_value(interval)
    text = value.name.strip()
    if isinstance(unit, exp.IntervalSpan):
        match = _YEARS_MONTHS.fullmatch(text)
        if _short_name(unit.this) != "year" or match is None:
            return None
        months = int(match[2]) * 12 + int(match[3])
        return -months * sign if match[1] == "-" else months * sign
    short = _short_name(unit)
    if short not in _MONTHS:
        return None
    if not re.fullmatch(r"[+-]?\d{1,9}", text):
        raise sql_error(interval, "an INTERVAL of months takes a whole number")
    return sign * int(text) * _MONTHS[short]


def _signed_value(interval: exp.Expr) -> tuple[int, exp.Expr]:
    """Return the sign before the value of an interval, and the value."""
    value = interval.this
    return (-1, value.this) if isinstance(value, exp.Neg) else (1, value)


def _short_name(unit: exp.Expr | None) -> str:
    return "" if unit is None else unit.name.lower().removesuffix("s")


def _ticks(interval: exp.Expr) -> int:
    if isinstance(interval, exp.Neg):
        return -interval_ticks(interval.this)
    if isinstance(interval, exp.Paren):
        return interval_ticks(interval.this)
    if isinstance(interval, exp.Add):
        return interval_ticks(interval.this) + interval_ticks(interval.expression)
    if not isinstance(interval, exp.Interval):
        rule = "a duration must be an INTERVAL literal, such as INTERVAL '10' MINUTES"
        raise sql_error(interval, rule)
    unit, (sign, value) = interval.args.get("unit"), _signed_value(interval)
    if not isinstance(value, exp.Literal) or len(value.name) > _MAX_CHARACTERS:
        raise sql_error(interval, "an INTERVAL takes a literal of up to 40 characters")
    if isinstance(unit, exp.IntervalSpan):
        return sign * _span_ticks(interval, value.name, unit)
    return sign * _unit_ticks(interval, value.name, _short_name(unit))


def _unit_ticks(interval: exp.Expr, number: str, short: str) -> int:
    if short in _MONTHS:
        rule = "months have no fixed length: use days, hours, minutes, seconds or finer units"
        raise sql_error(interval, rule)
    if short not in TICKS or not _NUMBER.fullmatch(number.strip()):
        rule = f"an INTERVAL must be a number and one of {', '.join(TICKS)}"
        raise sql_error(interval, rule)
    return _whole_ticks(interval, Fraction(number.strip()) * TICKS[short])


def _whole_ticks(interval: exp.Expr, ticks: Fraction) -> int:
    if ticks.denominator != 1:
        raise sql_error(interval, "a duration must be a whole number of microseconds")
    return int(ticks)


def _span_ticks(interval: exp.Expr, text: str, span: exp.IntervalSpan) -> int:
    """Return the microseconds of a span of units, such as ``'1 02:03:04.5' DAY TO SECOND``."""
    begin, end = _short_name(span.this), _short_name(span.expression)
    is_span = begin in _UNITS and end in _UNITS and _UNITS.index(begin) < _UNITS.index(end)
    units = _UNITS[_UNITS.index(begin) : _UNITS.index(end) + 1] if is_span else ()
    match = _layout(units).fullmatch(text.strip()) if is_span else None
    if match is None:
        rule = "an INTERVAL of several units must be written as '1 02:03:04' DAY TO SECOND"
        raise sql_error(interval, rule)
    parts = {unit: Fraction(match[unit]) for unit in units}
    for unit in units[1:]:
        if parts[unit] >= _BOUNDS[unit]:
            rule = f"{unit}s after another unit must be less than {_BOUNDS[unit]}"
            raise sql_error(interval, rule)
    ticks = _whole_ticks(interval, sum((parts[u] * TICKS[u] for u in units), Fraction(0)))
    return -ticks if match["sign"] == "-" else ticks


def _layout(units: tuple[str, ...]) -> re.Pattern[str]:
    digits = [f"(?P<{unit}>\\d+)" for unit in units]
    if units[-1] == "second":
        digits[-1] = r"(?P<second>\d+(\.\d+)?)"
    gap = " +" if units[0] == "day" else ":"
    return re.compile(f"(?P<sign>[+-]?){digits[0]}{gap}{':'.join(digits[1:])}", re.ASCII)
