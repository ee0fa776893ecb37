"""Literals of dates and instants: ``TIMESTAMP '2024-01-31 12:00'``."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone

import pyarrow as pa
from pyarrow import types
from sqlglot import exp

from gpu_windows.expressions.sql_text import sql_error

_DAY = r"(?P<year>\d{4})(-(?P<month>\d{1,2})(-(?P<day>\d{1,2})"
_ZONE = r"(Z|UTC|(?P<sign>[+-])(?P<hours>\d{1,2})(:(?P<minutes>\d{2}))?)"
_PARTS = r"(:(?P<second>\d{1,2})(\.(?P<parts>\d*))?)?"
_TIME = rf"(?P<hour>\d{{1,2}})(:(?P<minute>\d{{1,2}}){_PARTS} ?{_ZONE}?)?"
_INSTANT = re.compile(rf"{_DAY}([ T]{_TIME})?)?)?", re.ASCII)
_FURTHEST = timedelta(hours=18)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_RULE = "an instant is written as '2024-12-31 23:59:59.5', in UTC or with a zone as +01:00"


def parse_time(node: exp.Expr, text: str, to: pa.DataType) -> pa.Scalar:
    """Parse a date or an instant; an instant without a zone is in UTC.

    Raises
    ------
    SqlError
        If the text is neither.
    """
    match = _INSTANT.fullmatch(text.strip())
    is_date = types.is_date32(to)
    rule = "a day is written as '2024-12-31'" if is_date else _RULE
    if match is None:
        raise sql_error(node, rule)
    try:
        day = date(int(match["year"]), int(match["month"] or 1), int(match["day"] or 1))
        if is_date:
            return pa.scalar(day, to)
        return pa.scalar(_ticks(day, match), pa.int64()).cast(to)
    except (ValueError, OverflowError):
        raise sql_error(node, rule) from None


def _ticks(day: date, match: re.Match[str]) -> int:
    """Return the microseconds since 1970 of an instant; finer digits are dropped."""
    zone = UTC
    if match["sign"]:
        shift = timedelta(hours=int(match["hours"]), minutes=int(match["minutes"] or 0))
        if shift > _FURTHEST:
            raise ValueError
        zone = timezone(-shift if match["sign"] == "-" else shift)
    parts = int((match["parts"] or "0").ljust(6, "0")[:6])
    hour, minute, second = (int(match[each] or 0) for each in ("hour", "minute", "second"))
    at = datetime(day.year, day.month, day.day, hour, minute, second, parts, tzinfo=zone)
    return (at - _EPOCH) // timedelta(microseconds=1)
