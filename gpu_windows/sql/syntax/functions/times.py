"""Functions of times."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sqlglot import exp

from gpu_windows.sql.syntax.functions.building import (
    Function,
    UnsupportedCallError,
    integer_literal,
    need_text,
    number,
    spark_function,
    string,
    template,
    text_literal,
    typed_call,
)
from gpu_windows.sql.syntax.type_names import to_clock_time

#: Formats of letters that mean the same in Flink and Spark.
_FORMAT = re.compile(r"(?:[yMdHhmsSaE]|[^A-Za-z'\[\]{}#]|'(?:[^']|'')*')*")
#: Formats that texts are read by: fields of a fixed number of digits.
_READ_FORMAT = re.compile(r"(?:yyyy|MM|dd|HH|mm|ss|SSS|[^A-Za-z0-9'\[\]{}#]|'[^']*')+")
_FLOOR_UNITS = (
    *("YEAR", "QUARTER", "MONTH", "WEEK", "DAY"),
    *("HOUR", "MINUTE", "SECOND", "MILLISECOND"),
)
_SHORT = {
    **{name: name for name in ("YEAR", "QUARTER", "MONTH", "WEEK", "HOUR", "MINUTE", "SECOND")},
    "DAYOFYEAR": "DOY",
    "DAYOFMONTH": "DAY",
    "DAYOFWEEK": "DOW",
}
#: Units by their seconds, and by their months.
SECONDS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3_600, "DAY": 86_400, "WEEK": 604_800}
MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
#: Fields of times, as expressions over a time.
FIELDS: Mapping[str, Callable[..., exp.Expr]] = {
    "YEAR": template("YEAR(a)"),
    "ISOYEAR": template("EXTRACT(YEAROFWEEK FROM a)"),
    "QUARTER": template("QUARTER(a)"),
    "MONTH": template("MONTH(a)"),
    "WEEK": template("WEEKOFYEAR(a)"),
    "DAY": template("DAYOFMONTH(a)"),
    "DOY": template("DAYOFYEAR(a)"),
    "DOW": template("DAYOFWEEK(a)"),
    "ISODOW": template("(WEEKDAY(a) + 1)"),
    "HOUR": template("HOUR(a)"),
    "MINUTE": template("MINUTE(a)"),
    "SECOND": template("SECOND(a)"),
    "MILLISECOND": template("CAST(DATE_FORMAT(a, 'SSS') AS BIGINT)"),
    "MICROSECOND": template("CAST(DATE_FORMAT(a, 'SSSSSS') AS BIGINT)"),
    "EPOCH": template(
        "(CAST(UNIX_DATE(CAST(a AS DATE)) AS BIGINT) * 86400 + HOUR(a) * 3600 + MINUTE(a) * 60 "
        "+ SECOND(a))"
    ),
    "DECADE": template("(YEAR(a) DIV 10)"),
    "CENTURY": template("((YEAR(a) + 99) DIV 100)"),
    "MILLENNIUM": template("((YEAR(a) + 999) DIV 1000)"),
}
#: Texts that Flink reads as a time or a date.
_DAY_TEXT, _CLOCK_TEXT = r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}", "[0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}"
#: Texts of times with up to three digits of fractions of seconds, and with more.
_TIME_TEXT = rf"\A{_DAY_TEXT}( {_CLOCK_TEXT}(\.[0-9]{{1,3}})?)?\z"
_FINE_TIME_TEXT = rf"\A{_DAY_TEXT} {_CLOCK_TEXT}\.[0-9]{{4,9}}\z"
_DATE_TEXT = r"\A[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}( .*)?\z"


def extract_node(node: exp.Extract) -> exp.Expr:
    """Return ``EXTRACT(DAY FROM ts)``."""
    return _extract(node.name.upper(), node.expression)


def _extract(unit: str, of: exp.Expr) -> exp.Expr:
    _need_unit(unit, FIELDS)
    return typed_call("EXTRACT", string(unit), of)


def _make_extract(unit: str) -> Callable[..., exp.Expr]:
    return lambda of: _extract(unit, of)


def floor_or_ceil_time(node: exp.Floor | exp.Ceil) -> exp.Expr:
    """Return ``FLOOR(ts TO DAY)``, ``CEIL(ts TO HOUR)``."""
    unit = node.args["to"].name.upper()
    _need_unit(unit, _FLOOR_UNITS, "TO ")
    if unit == "WEEK" and isinstance(node, exp.Ceil):
        raise UnsupportedCallError("TO WEEK is not covered: use FLOOR")
    name = "FLOOR_TIME" if isinstance(node, exp.Floor) else "CEIL_TIME"
    return typed_call(name, string(unit), node.this)


def _checked_format(pattern: exp.Expr) -> str:
    text = text_literal(pattern)
    if text is None or not _FORMAT.fullmatch(text):
        raise UnsupportedCallError("takes a literal format of y M d H h m s S a E")
    return text


def _from_unixtime(of: exp.Expr, pattern: exp.Expr | None = None) -> exp.Expr:
    text = "yyyy-MM-dd HH:mm:ss" if pattern is None else _checked_format(pattern)
    return spark_function("DATE_FORMAT")(spark_function("TIMESTAMP_SECONDS")(of), string(text))


_READ_TIME = template(
    "COALESCE(TRY_CAST(CASE WHEN REGEXP_LIKE(a, b) THEN a END AS TIMESTAMP_NTZ), "
    "CAST(DATE_TRUNC('MILLISECOND', TRY_CAST(CASE WHEN REGEXP_LIKE(a, c) THEN a END "
    "AS TIMESTAMP_NTZ)) AS TIMESTAMP_NTZ))"
)
_READ_DATE = template("TRY_CAST(CASE WHEN REGEXP_LIKE(a, b) THEN a END AS DATE)")


def _checked_read_format(pattern: exp.Expr) -> exp.Expr:
    text = need_text(pattern, "format")
    if not _READ_FORMAT.fullmatch(text) or "yyyy" not in text:
        raise UnsupportedCallError(
            "takes a literal format of yyyy MM dd HH mm ss SSS, the year included"
        )
    return string(text)


def _read_time(of: exp.Expr, pattern: exp.Expr | None = None) -> exp.Expr:
    read = _READ_TIME(of, string(_TIME_TEXT), string(_FINE_TIME_TEXT))
    if pattern is None:
        return read
    # after the standard format, which Flink reads in any case
    other = spark_function("TRY_TO_TIMESTAMP")(of.copy(), _checked_read_format(pattern))
    return exp.Coalesce(this=read, expressions=[to_clock_time(other)])


def _read_date(of: exp.Expr, pattern: exp.Expr | None = None) -> exp.Expr:
    if pattern is None:
        return _READ_DATE(of, string(_DATE_TEXT))
    return exp.cast(_read_start(of, pattern), "DATE")


def _read_start(of: exp.Expr, pattern: exp.Expr) -> exp.Expr:
    """Return the time at the start of a text: what follows it is ignored."""
    checked = _checked_read_format(pattern)
    width = number(len(checked.name.replace("'", "")))
    start = spark_function("LEFT")(of, width)
    return spark_function("TRY_TO_TIMESTAMP")(start, checked)


def _unix_timestamp(of: exp.Expr, pattern: exp.Expr | None = None) -> exp.Expr:
    pattern = string("yyyy-MM-dd HH:mm:ss") if pattern is None else pattern
    return spark_function("UNIX_SECONDS")(_read_start(of, pattern))


def _to_timestamp_ltz(of: exp.Expr, precision: exp.Expr | None = None) -> exp.Expr:
    digits = 3 if precision is None else integer_literal(precision, 0)
    if digits not in (0, 3, 6):
        raise UnsupportedCallError(
            "takes a literal precision: 0 for seconds, 3 for milliseconds, or 6"
        )
    names = {0: "TIMESTAMP_SECONDS", 3: "TIMESTAMP_MILLIS", 6: "TIMESTAMP_MICROS"}
    return typed_call("TO_TIMESTAMP_LTZ", spark_function(names[digits])(of), of)


_CONVERT = template(
    "DATE_FORMAT(FROM_UTC_TIMESTAMP(TO_UTC_TIMESTAMP("
    "TRY_TO_TIMESTAMP(LEFT(a, 19), 'yyyy-MM-dd HH:mm:ss'), b), c), 'yyyy-MM-dd HH:mm:ss')"
)


def _convert(of: exp.Expr, start: exp.Expr, end: exp.Expr) -> exp.Expr:
    for zone in (need_text(start, "zone"), need_text(end, "zone")):
        try:
            ZoneInfo(zone)
        except (ZoneInfoNotFoundError, ValueError):
            raise UnsupportedCallError(f"takes names of zones: there is no {zone!r}") from None
    return _CONVERT(of, start, end)


def _unit(node: exp.Expr) -> str:
    unit = node.name.upper().removesuffix("S").removeprefix("SQL_TSI_")
    _need_unit(unit, (*SECONDS, *MONTHS))
    return unit


def _need_unit(unit: str, units: Collection[str], before: str = "") -> None:
    if unit not in units:
        raise UnsupportedCallError(f"takes {before}one of {', '.join(units)}")


def seconds_interval(seconds: exp.Expr) -> exp.Expr:
    """Return an interval of seconds."""
    return spark_function("MAKE_INTERVAL")(*(number(0) for _ in range(6)), seconds)


def _with_unit(name: str) -> Function:
    return Function(
        3, 3, lambda unit, one, other: typed_call(name, string(_unit(unit)), one, other)
    )


#: The functions by name.
TIMES: Mapping[str, Function] = {
    **{name: Function(1, 1, _make_extract(unit)) for name, unit in _SHORT.items()},
    "DATE_FORMAT": Function(
        2, 2, lambda of, form: typed_call("DATE_FORMAT", of, string(_checked_format(form)))
    ),
    "FROM_UNIXTIME": Function(1, 2, _from_unixtime),
    "TO_TIMESTAMP": Function(1, 2, _read_time),
    "TO_DATE": Function(1, 2, _read_date),
    "UNIX_TIMESTAMP": Function(1, 2, _unix_timestamp),
    "TO_TIMESTAMP_LTZ": Function(1, 2, _to_timestamp_ltz),
    "CONVERT_TZ": Function(3, 3, _convert),
    "TIMESTAMPDIFF": _with_unit("TIMESTAMPDIFF"),
    "TIMESTAMPADD": _with_unit("TIMESTAMPADD"),
}
