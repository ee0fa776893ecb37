"""Calls and casts of times as Spark expressions, once the types of their arguments are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

from gpu_windows.sql.syntax.functions.building import (
    TypedCall,
    UnsupportedCallError,
    in_parentheses,
    integer_literal,
    number,
    spark_function,
    string,
    template,
)
from gpu_windows.sql.syntax.functions.times import FIELDS, MONTHS, SECONDS, seconds_interval
from gpu_windows.sql.syntax.json_documents import json_array, json_object, json_string
from gpu_windows.sql.syntax.type_names import (
    CLOCK_TIME,
    DATE,
    DECIMAL,
    ELEMENTS,
    FLOATING,
    INTEGER,
    SECOND_DIGITS,
    TEXT,
    TIMESTAMP,
    ZONED_TIMESTAMP,
    to_clock_time,
    with_type,
)

_ZONE = (
    "is in UTC over Arrow tables: give the time as timestamp('us', 'UTC'), or query in a Spark "
    "session of that zone"
)
_CLOCK_UNITS = ("HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND")


def lower_call(node: TypedCall, types: Sequence[str | None]) -> exp.Expr:
    """Return the Spark expression of a call.

    Raises
    ------
    UnsupportedCallError
        If Flink refuses the types of its arguments, or a result would differ.
    """
    if ZONED_TIMESTAMP in types and node.name not in _IN_ANY_ZONE:
        raise UnsupportedCallError(_ZONE)
    arguments = [each.copy() for each in node.expressions]
    made, result = _LOWERED[node.name](arguments, types)
    return made if result is None else with_type(made, result)


_Lowered = tuple[exp.Expr, str | None]

_EPOCH_OF_DATE = template("(CAST(UNIX_DATE(a) AS BIGINT) * 86400)")


def _extract(arguments: Sequence[exp.Expr], types: Sequence[str | None]) -> _Lowered:
    unit, of = arguments[0].name, arguments[1]
    _check_unit(unit, types[1])
    if types[1] in (TEXT, INTEGER):
        raise UnsupportedCallError("takes a time or a DATE: cast it before")
    make = _EPOCH_OF_DATE if unit == "EPOCH" and types[1] == DATE else FIELDS[unit]
    return make(of), INTEGER


def _check_unit(unit: str, kind: str | None) -> None:
    if kind == DATE and unit in _CLOCK_UNITS:
        raise UnsupportedCallError(f"of a DATE takes no {unit}: a date has no time of day")


def _format(arguments: Sequence[exp.Expr], types: Sequence[str | None]) -> _Lowered:
    of, pattern = arguments
    if types[0] == TEXT:
        of = spark_function("TRY_TO_TIMESTAMP")(of, string("yyyy-MM-dd HH:mm:ss"))
    return spark_function("DATE_FORMAT")(of, pattern), TEXT


_AFTER_SUNDAY = template("TIMESTAMPADD(DAY, -1, DATE_TRUNC('WEEK', TIMESTAMPADD(DAY, 1, a)))")
_CEIL = template("CASE WHEN b = a THEN a ELSE c END")


def _round_down(unit: str, of: exp.Expr, kind: str | None) -> exp.Expr:
    """Return a time rounded down; weeks begin on Sunday."""
    is_week = unit == "WEEK"
    made = _AFTER_SUNDAY(of) if is_week else spark_function("DATE_TRUNC")(string(unit), of)
    if kind == CLOCK_TIME:
        return to_clock_time(made)
    return exp.cast(made, "DATE") if kind == DATE else made


def _floor(arguments: Sequence[exp.Expr], types: Sequence[str | None]) -> _Lowered:
    unit, of, kind = arguments[0].name, arguments[1], types[1]
    _check_unit(unit, kind)
    if kind == DATE and unit == "DAY":
        return of, DATE
    return _round_down(unit, of, kind), kind or TIMESTAMP


def _ceil(arguments: Sequence[exp.Expr], types: Sequence[str | None]) -> _Lowered:
    unit, of, kind = arguments[0].name, arguments[1], types[1]
    if kind == DATE:
        raise UnsupportedCallError("of a DATE is not covered: cast it AS TIMESTAMP")
    floor = _round_down(unit, of, kind)
    count, step = (3, "MONTH") if unit == "QUARTER" else (1, unit)
    above = spark_function("TIMESTAMPADD")(exp.Var(this=step), number(count), floor.copy())
    upper = to_clock_time(above) if kind == CLOCK_TIME else above
    return _CEIL(of, floor, upper), kind or TIMESTAMP


def _to_timestamp(arguments: Sequence[exp.Expr], types: Sequence[str | None]) -> _Lowered:
    if types[1] not in (INTEGER, None):
        raise UnsupportedCallError("takes a whole number; TO_TIMESTAMP reads a string")
    return arguments[0], TIMESTAMP


# ---- differences and sums

_MICROS = template("((UNIX_MICROS(b) - UNIX_MICROS(a)) DIV c)")
_DAYS = template("DATEDIFF(b, a)")
_MONTHS_UP = (
    "(YEAR({b}) * 12 + MONTH({b}) - YEAR({a}) * 12 - MONTH({a}) - "
    "CASE WHEN ADD_MONTHS({a}, YEAR({b}) * 12 + MONTH({b}) - YEAR({a}) * 12 - MONTH({a})) > {b} "
    "THEN 1 ELSE 0 END)"
)
_MONTHS_BETWEEN = template(
    f"CASE WHEN a <= b THEN {_MONTHS_UP.format(a='a', b='b')} "
    f"ELSE -{_MONTHS_UP.format(a='b', b='a')} END"
)


def _difference(arguments: Sequence[exp.Expr], types: Sequence[str | None]) -> _Lowered:
    unit, start, end = arguments[0].name, arguments[1], arguments[2]
    kinds = set(types[1:])
    if TEXT in kinds or INTEGER in kinds:
        raise UnsupportedCallError("takes two times or DATEs: cast them before")
    if kinds == {DATE}:
        return exp.cast(_difference_of_dates(unit, start, end), "INT"), INTEGER
    if unit in MONTHS:
        raise UnsupportedCallError(f"of {unit} takes two DATEs: CAST(time AS DATE)")
    if kinds & {CLOCK_TIME, DATE} and ZONED_TIMESTAMP not in kinds:
        made = spark_function("TIMESTAMPDIFF")(exp.Var(this=unit), start, end)
        return exp.cast(made, "INT"), INTEGER
    ticks = number(SECONDS[unit] * 1_000_000)
    return exp.cast(_MICROS(start, end, ticks), "INT"), INTEGER


def _difference_of_dates(unit: str, start: exp.Expr, end: exp.Expr) -> exp.Expr:
    if unit in MONTHS:
        months = _MONTHS_BETWEEN(start, end)
        return _divide(months, MONTHS[unit])
    days = _DAYS(start, end)
    if unit == "WEEK":
        return _divide(days, 7)
    factor = 86_400 // SECONDS[unit]
    return exp.Paren(this=exp.Mul(this=exp.cast(days, "BIGINT"), expression=number(factor)))


def _divide(of: exp.Expr, by: int) -> exp.Expr:
    return of if by == 1 else exp.IntDiv(this=in_parentheses(of), expression=number(by))


def _add(arguments: Sequence[exp.Expr], types: Sequence[str | None]) -> _Lowered:
    unit, count, of = arguments[0].name, arguments[1], arguments[2]
    kind = types[2]
    if kind in (TEXT, INTEGER):
        raise UnsupportedCallError("takes a time or a DATE: cast it before")
    if kind == DATE and unit in MONTHS:
        return spark_function("ADD_MONTHS")(of, _times(count, MONTHS[unit])), DATE
    if kind == DATE and unit in ("DAY", "WEEK"):
        return spark_function("DATE_ADD")(of, _times(count, 7 if unit == "WEEK" else 1)), DATE
    if unit in MONTHS:
        raise UnsupportedCallError(f"of {unit} takes a DATE: months have no fixed length")
    if kind == DATE:
        of, kind = to_clock_time(of), CLOCK_TIME
    length = seconds_interval(_times(count, SECONDS[unit]))
    return exp.Paren(this=exp.Add(this=in_parentheses(of), expression=length)), kind or TIMESTAMP


def _times(count: exp.Expr, factor: int) -> exp.Expr:
    if factor == 1:
        return count
    if isinstance(count, exp.Literal):
        return number(int(count.name) * factor)
    if isinstance(count, exp.Neg) and isinstance(count.this, exp.Literal):
        return number(-int(count.this.name) * factor)
    return exp.Mul(this=in_parentheses(count), expression=number(factor))


_CUT_FLOAT = template(
    "CASE WHEN ABS(ROUND(a, b)) > ABS(a) THEN ROUND(ROUND(a, b) - SIGN(a) * c, b) "
    "ELSE ROUND(a, b) END"
)
_CUT_DECIMAL = template("ROUND(a - a % c, b)")
_CUT_INTEGER = template("(a - a % b)")


def _truncate(arguments: Sequence[exp.Expr], types: Sequence[str | None]) -> _Lowered:
    of, digits = arguments
    count = integer_literal(digits) or 0
    if types[0] == INTEGER:
        return (of if count >= 0 else _CUT_INTEGER(of, number(10**-count))), INTEGER
    if types[0] not in (DECIMAL, FLOATING):
        raise UnsupportedCallError("takes a number of a known type: cast it before")
    if types[0] == FLOATING:
        return _CUT_FLOAT(of, digits, exp.Literal.number(f"1e{-count}")), FLOATING
    unit = f"0.{'0' * (count - 1)}1" if count > 0 else str(10**-count)
    return _CUT_DECIMAL(of, digits, exp.Literal.number(unit)), DECIMAL


# ---- casts

_FORMAT = "yyyy-MM-dd HH:mm:ss"
#: Milliseconds, as of TIMESTAMP(3); microseconds of times that have some.
_SHORTENED = template(f"REGEXP_REPLACE(DATE_FORMAT(a, '{_FORMAT}.SSSSSS'), '000\\\\z', '')")


def time_text(of: exp.Expr) -> exp.Expr:
    """Return a time cast AS STRING, with Flink's digits of seconds.

    Seconds have the digits of the type, if the expression says it. A column is a TIMESTAMP(3); its
    times have six digits if they are not whole milliseconds, so that none is lost.
    """
    digits = _digits(of)
    if digits is None:
        return _SHORTENED(of)
    pattern = _FORMAT if digits == 0 else f"{_FORMAT}.{'S' * digits}"
    return spark_function("DATE_FORMAT")(of, string(pattern))


def _digits(of: exp.Expr) -> int | None:
    """Return the digits of seconds of a cast or a literal; None for other expressions."""
    digits = of.unnest().meta.get(SECOND_DIGITS)
    return None if digits is None else int(digits)


# ---- numbers, lists and documents

_OF_LIST = template("GET(a, b - 1)")


def _element(arguments: Sequence[exp.Expr], types: Sequence[str | None]) -> _Lowered:
    """Return the element of a list by its index, from 1, or of a map by a text."""
    owner = types[0] or ""
    element = owner.removeprefix(ELEMENTS) if owner.startswith(ELEMENTS) else None
    if types[1] == INTEGER:
        return _OF_LIST(*arguments), element
    if types[1] != TEXT:
        raise UnsupportedCallError("of a list takes an integer, of a map a string: cast it before")
    return spark_function("TRY_ELEMENT_AT")(*arguments), element


def _text(make: Callable[..., exp.Expr]) -> Callable[..., _Lowered]:
    return lambda arguments, types: (make(arguments, types), TEXT)


_LOWERED: Mapping[str, Callable[[Sequence[exp.Expr], Sequence[str | None]], _Lowered]] = {
    "EXTRACT": _extract,
    "DATE_FORMAT": _format,
    "FLOOR_TIME": _floor,
    "CEIL_TIME": _ceil,
    "TO_TIMESTAMP_LTZ": _to_timestamp,
    "TIMESTAMPDIFF": _difference,
    "TIMESTAMPADD": _add,
    "TRUNCATE": _truncate,
    "ELEMENT": _element,
    "JSON_OBJECT": _text(json_object),
    "JSON_ARRAY": _text(json_array),
    "JSON_STRING": _text(json_string),
}
#: Calls of instants alone, whatever their zone.
_IN_ANY_ZONE = ("TIMESTAMPDIFF", "TIMESTAMPADD", "TO_TIMESTAMP_LTZ")
