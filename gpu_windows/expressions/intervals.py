"""Durations as SQL writes them."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING

from gpu_windows.expressions.places import refused
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.vocabulary.options import TICKS

if TYPE_CHECKING:
    from sqlglot import exp

_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?", re.ASCII)
_ORDER = ("day", "hour", "minute", "second")
#: What the units after the first are less than.
_BOUNDS = {"hour": 24, "minute": 60, "second": 60}
_LONGEST = 40


def ticks_of(interval: exp.Expr) -> int:
    """Return a duration in microseconds: ``INTERVAL '10' MINUTES``, ``'1:30' MINUTE TO SECOND``.

    Raises
    ------
    SqlError
        If it is none, or one of months, which are of no fixed length.
    """
    ticks = _ticks(interval)
    if not LONG_MIN < ticks <= LONG_MAX:
        raise refused(interval, "a duration fits 64 bits of microseconds")
    return ticks


def _ticks(interval: exp.Expr) -> int:
    from sqlglot import exp

    if isinstance(interval, exp.Neg):
        return -ticks_of(interval.this)
    if isinstance(interval, exp.Paren):
        return ticks_of(interval.this)
    if isinstance(interval, exp.Add):
        return ticks_of(interval.this) + ticks_of(interval.expression)
    if not isinstance(interval, exp.Interval):
        rule = "a duration is an INTERVAL that is written out: INTERVAL '10' MINUTES"
        raise refused(interval, rule)
    unit, of = interval.args.get("unit"), interval.this
    sign = -1 if isinstance(of, exp.Neg) else 1
    value = of.this if isinstance(of, exp.Neg) else of
    if not isinstance(value, exp.Literal) or len(value.name) > _LONGEST:
        raise refused(interval, "the number of an INTERVAL is written out, in up to 40 characters")
    if isinstance(unit, exp.IntervalSpan):
        return sign * _spanned(interval, value.name, unit.this.name, unit.expression.name)
    return sign * _of_unit(interval, value.name, "" if unit is None else unit.name)


def _of_unit(interval: exp.Expr, number: str, unit: str) -> int:
    short = unit.lower().removesuffix("s")
    if short in ("month", "year", "quarter"):
        rule = "a window is of a fixed length: days, hours, minutes, seconds and less"
        raise refused(interval, rule)
    if short not in TICKS or not _NUMBER.fullmatch(number.strip()):
        rule = f"an INTERVAL is a number and one of {', '.join(TICKS)}"
        raise refused(interval, rule)
    return _whole(interval, Fraction(number.strip()) * TICKS[short])


def _whole(interval: exp.Expr, ticks: Fraction) -> int:
    if ticks.denominator != 1:
        raise refused(interval, "a duration is a whole number of microseconds")
    return int(ticks)


def _spanned(interval: exp.Expr, text: str, first: str, last: str) -> int:
    """Return ``'1 02:03:04.5' DAY TO SECOND``."""
    begin, end = first.lower().removesuffix("s"), last.lower().removesuffix("s")
    known = begin in _ORDER and end in _ORDER and _ORDER.index(begin) < _ORDER.index(end)
    units = _ORDER[_ORDER.index(begin) : _ORDER.index(end) + 1] if known else ()
    match = _layout(units).fullmatch(text.strip()) if known else None
    if match is None:
        rule = "an INTERVAL of several units is written as '1 02:03:04' DAY TO SECOND"
        raise refused(interval, rule)
    parts = {unit: Fraction(match[unit]) for unit in units}
    for unit in units[1:]:
        if parts[unit] >= _BOUNDS[unit]:
            raise refused(interval, f"{unit}s after another unit are less than {_BOUNDS[unit]}")
    ticks = _whole(interval, sum((parts[u] * TICKS[u] for u in units), Fraction(0)))
    return -ticks if match["sign"] == "-" else ticks


def _layout(units: tuple[str, ...]) -> re.Pattern[str]:
    digits = [f"(?P<{unit}>\\d+)" for unit in units]
    if units[-1] == "second":
        digits[-1] = r"(?P<second>\d+(\.\d+)?)"
    gap = " +" if units[0] == "day" else ":"
    return re.compile(f"(?P<sign>[+-]?){digits[0]}{gap}{':'.join(digits[1:])}", re.ASCII)
