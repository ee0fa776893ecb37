"""Times as texts: formats of Spark, which are those of Java's DateTimeFormatter, and literals."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types
from sqlglot import exp

from gpu_windows.expressions.arrays import find_missing, whole_numbers
from gpu_windows.expressions.sql_text import sql_error

_TEXT, _LONG = pa.string(), pa.int64()
#: Parts of a format: a letter repeated, a quoted text, or other characters.
_PARTS = re.compile(r"([A-Za-z])\1*|'((?:[^']|'')*)'|[^A-Za-z']+")
_MONTHS = ("January February March April May June July August September October November "
           "December").split()  # fmt: skip
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()


def format_times(node: exp.Expr, wall: pa.Array, pattern: str) -> pa.Array:
    """Return times as texts.

    Parameters
    ----------
    node : sqlglot.exp.Expr
        For positions of errors.
    wall : pyarrow.Array
        Times without a zone, in microseconds.
    pattern : str
        Of y M d H h m s S a E, quoted texts, and characters that are not letters.

    Raises
    ------
    SqlError
        If the format has other letters.
    """
    parts = [_format_part(node, wall, match) for match in _split(node, pattern)]
    if not any(isinstance(each, pa.Array) for each in parts):
        return pc.if_else(wall.is_valid(), "".join(map(str, parts)), pa.scalar(None, _TEXT))
    return pc.binary_join_element_wise(*parts, "")


def _split(node: exp.Expr, pattern: str) -> list[re.Match[str]]:
    found = [*_PARTS.finditer(pattern)]
    if "".join(match[0] for match in found) != pattern:
        raise sql_error(node, "a quote in a format must be closed", pattern)
    return found


def _literal(match: re.Match[str]) -> str | None:
    """Return the text that a part stands for; None for letters."""
    if match[1]:
        return None
    if match[2] is None:
        return match[0]
    return match[2].replace("''", "'") or "'"


def _format_part(node: exp.Expr, wall: pa.Array, match: re.Match[str]) -> pa.Array | str:
    literal = _literal(match)
    if literal is not None:
        return literal
    letter, width = match[1], len(match[0])
    if letter in _NAMES and width >= 3:
        index, names = _NAMES[letter]
        found = pa.array(names if width > 3 else [each[:3] for each in names], _TEXT)
        return found.take(index(wall))
    if letter == "a":
        return pc.if_else(pc.less(pc.hour(wall), 12), pa.scalar("AM"), pa.scalar("PM"))
    if letter == "S":
        digits = _pad(pc.add(pc.multiply(pc.millisecond(wall), 1_000), pc.microsecond(wall)), 6)
        filled = digits if width <= 6 else pc.utf8_rpad(digits, width, "0")
        return pc.utf8_slice_codeunits(filled, 0, width)
    if letter == "y":
        year = pc.year(wall)
        return _pad(pc.cast(_modulo(year, 100), _LONG), 2) if width == 2 else _pad(year, width)
    field = _NUMBERS.get(letter)
    if field is None:
        raise sql_error(node, "over Arrow tables a format takes y M d H h m s S a E", match[0])
    return _pad(field(wall), width)


def _modulo(values: pa.Array, by: int) -> pa.Array:
    whole = pc.multiply(pc.divide(values, by), by)
    return pc.subtract(values, whole)


def _pad(values: pa.Array, width: int) -> pa.Array:
    return pc.utf8_lpad(values.cast(_LONG).cast(_TEXT), width, "0")


def _short_hour(wall: pa.Array) -> pa.Array:
    hour = _modulo(pc.hour(wall), 12)
    return pc.if_else(pc.equal(hour, 0), pa.scalar(12, hour.type), hour)


_NAMES: Mapping[str, tuple[Callable[[pa.Array], pa.Array], list[str]]] = {
    "M": (lambda wall: pc.subtract(pc.month(wall), 1), _MONTHS),
    "E": (pc.day_of_week, _DAYS),
}
_NUMBERS: Mapping[str, Callable[[pa.Array], pa.Array]] = {
    "M": pc.month,
    "d": pc.day,
    "H": pc.hour,
    "h": _short_hour,
    "m": pc.minute,
    "s": pc.second,
}

#: Fields of texts that are read, with their number of digits.
_READ = {"yyyy": "year", "MM": "month", "dd": "day", "HH": "hour", "mm": "minute", "ss": "second"}


def read_times(node: exp.Expr, texts: pa.Array, pattern: str) -> pa.Array:
    """Return the times that texts stand for; null for texts of another format.

    Parameters
    ----------
    node : sqlglot.exp.Expr
        For positions of errors.
    texts : pyarrow.Array
    pattern : str
        Of yyyy MM dd HH mm ss SSS, quoted texts, and characters that are not letters.

    Returns
    -------
    pyarrow.Array
        Times without a zone, in microseconds.

    Raises
    ------
    SqlError
        If the format has other letters, or a field twice.
    """
    fields: list[str] = []
    regex = "".join(_read_part(node, match, fields) for match in _split(node, pattern))
    if len(set(fields)) < len(fields):
        raise sql_error(node, "a format must have each field once", pattern)
    found = pc.extract_regex(texts, pattern=f"(?s)\\A{regex}\\z")
    values = {name: _digits(found, pc.struct_field(found, [name])) for name in fields}
    return _assemble(values, find_missing(found))


def _read_part(node: exp.Expr, match: re.Match[str], fields: list[str]) -> str:
    literal = _literal(match)
    if literal is not None:
        return re.escape(literal)
    part = match[0]
    if set(part) == {"S"} and len(part) <= 6:
        fields.append(f"fraction{len(part)}")
    elif part in _READ:
        fields.append(_READ[part])
    else:
        raise sql_error(node, "over Arrow tables a format is of yyyy MM dd HH mm ss SSS", part)
    return f"(?P<{fields[-1]}>[0-9]{{{len(part)}}})"


def _digits(found: pa.Array, texts: pa.Array, default: str = "0") -> np.ndarray:
    """Return the numbers that texts stand for; a default for those not found, and empty ones."""
    is_there = pc.and_(found.is_valid(), pc.not_equal(texts, ""))
    return whole_numbers(pc.if_else(is_there, texts, default))


def days_of_months(months: np.ndarray) -> np.ndarray:
    """Return the number of days of each month."""
    found: np.ndarray = ((months + 1).astype("M8[D]") - months.astype("M8[D]")).astype(np.int64)
    return found


def _assemble(values: dict[str, np.ndarray], missing: np.ndarray) -> pa.Array:
    zeros = np.zeros(len(missing), np.int64)

    def field(name: str, default: int = 0) -> np.ndarray:
        return values.get(name, zeros + default)

    month, day, hour = field("month", 1), field("day", 1), field("hour")
    is_valid = (month >= 1) & (month <= 12) & (day >= 1) & (hour < 24)
    is_valid &= (field("minute") < 60) & (field("second") < 60) & (field("year", 1970) >= 1)
    safe_month = np.clip(month, 1, 12)
    months = (field("year", 1970) - 1970) * 12 + safe_month - 1
    first = months.astype("M8[M]")
    is_valid &= day <= days_of_months(first)
    days = first.astype("M8[D]").astype(np.int64) + day - 1
    seconds = ((days * 24 + hour) * 60 + field("minute")) * 60 + field("second")
    ticks = seconds * 1_000_000
    for name, digits in values.items():
        if name.startswith("fraction"):
            ticks = ticks + digits * 10 ** (6 - int(name.removeprefix("fraction")))
    return pa.array(ticks, _LONG, mask=missing | ~is_valid).cast(pa.timestamp("us"))


_DAY = r"(?P<year>\d{4})(-(?P<month>\d{1,2})(-(?P<day>\d{1,2})"
_SECONDS = r"(:(?P<second>\d{1,2})(\.(?P<parts>\d*))?)?"
#: Texts that are cast to instants, without a zone.
_INSTANT = (
    rf"(?s)\A[ \t\n]*{_DAY}([ T]((?P<hour>\d{{1,2}}):(?P<minute>\d{{1,2}}){_SECONDS})?)?)?)?"
    r"[ \t\n]*\z"
)
_GROUP = re.compile(r"\((?!\?)")


def read_instants(texts: pa.Array) -> pa.Array:
    """Return times for texts such as ``2024-12-31 23:59:59.5``; null for others.

    Digits finer than a microsecond are dropped, as by Spark's cast.
    """
    found = pc.extract_regex(texts, pattern=_GROUP.sub("(?:", _INSTANT))
    defaults = {"year": "0", "month": "1", "day": "1", "hour": "0", "minute": "0", "second": "0"}
    values = {
        name: _digits(found, pc.struct_field(found, [name]), default)
        for name, default in defaults.items()
    }
    parts = pc.utf8_rpad(pc.struct_field(found, ["parts"]), 6, "0")
    values["fraction6"] = _digits(found, pc.utf8_slice_codeunits(parts, 0, 6))
    return _assemble(values, find_missing(found))


_ZONE = r"(Z|UTC|(?P<sign>[+-])(?P<hours>\d{1,2})(:(?P<minutes>\d{2}))?)"
_LITERAL = re.compile(
    rf"{_DAY}([ T](?P<hour>\d{{1,2}})(:(?P<minute>\d{{1,2}}){_SECONDS} ?{_ZONE}?)?)?)?)?", re.ASCII
)
_FURTHEST = timedelta(hours=18)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_RULE = "an instant is written as '2024-12-31 23:59:59.5', in UTC or with a zone as +01:00"


def parse_time(node: exp.Expr, text: str, to: pa.DataType) -> pa.Scalar:
    """Parse the literal of a date or an instant; an instant without a zone is in UTC.

    Raises
    ------
    SqlError
        If the text is neither.
    """
    match = _LITERAL.fullmatch(text.strip())
    is_date = types.is_date32(to)
    rule = "a day is written as '2024-12-31'" if is_date else _RULE
    if match is None:
        raise sql_error(node, rule)
    try:
        day = date(int(match["year"]), int(match["month"] or 1), int(match["day"] or 1))
        if is_date:
            return pa.scalar(day, to)
        return pa.scalar(_ticks(day, match), _LONG).cast(to)
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
