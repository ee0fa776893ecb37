"""Durations as SQL writes them."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING

from gpu_windows.expressions.places import refused
from gpu_windows.options import TICKS
from gpu_windows.rules import LONG_MAX, LONG_MIN

if TYPE_CHECKING:
    from sqlglot import exp

_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")
_TIME = re.compile(r"(?P<sign>[+-]?)(?P<first>\d+)(?:[ :](?P<rest>[\d:.]+))?")
_ORDER = ("day", "hour", "minute", "second")


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
    if not isinstance(value, exp.Literal):
        raise refused(interval, "the number of an INTERVAL is written out")
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
    ticks = Decimal(number.strip()) * TICKS[short]
    if ticks != int(ticks):
        raise refused(interval, "a duration is a whole number of microseconds")
    return int(ticks)


def _spanned(interval: exp.Expr, text: str, first: str, last: str) -> int:
    """Return ``'1 02:03:04.5' DAY TO SECOND``."""
    units = [*_ORDER]
    begin, end = first.lower().removesuffix("s"), last.lower().removesuffix("s")
    match = _TIME.fullmatch(text.strip())
    known = begin in units and end in units and units.index(begin) < units.index(end)
    parts = (
        [] if match is None else [match["first"], *filter(None, (match["rest"] or "").split(":"))]
    )
    wanted = units[units.index(begin) : units.index(end) + 1] if known else []
    if match is None or len(parts) != len(wanted):
        rule = "an INTERVAL of several units is written as '1 02:03:04' DAY TO SECOND"
        raise refused(interval, rule)
    ticks = sum(Decimal(part) * TICKS[unit] for part, unit in zip(parts, wanted, strict=True))
    return int(-ticks if match["sign"] == "-" else ticks)
