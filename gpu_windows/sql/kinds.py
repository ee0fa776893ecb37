"""What depends on the types of columns: division, texts of values, and days that are added."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, TypeAlias

import pyarrow as pa
from pyarrow import types
from sqlglot import exp

from gpu_windows.expressions.intervals import ticks_of
from gpu_windows.expressions.places import refused

#: Returns the kind of a column, if it is known.
KindOf: TypeAlias = Callable[[exp.Column], "str | None"]

INTEGER, INSTANT, TRUTH = "integer", "instant", "truth"
#: Times that are written in another zone than UTC, which is that of days over Arrow tables.
ZONED = "zoned"
#: Before the kind of the elements of a list, or of the values of a map.
_ELEMENTS = "elements: "
_UTC = (None, "UTC", "Etc/UTC", "Z", "+00:00", "GMT")
_DAY = 86_400_000_000
_SECOND = 1_000_000
_INTEGERS = (
    *(exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT),
    exp.DType.UINT,
)
_INSTANTS = (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ)
_TEXTS = (exp.DType.TEXT, exp.DType.VARCHAR)
_OF_PARTS = (
    *(exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.IntDiv),
    *(exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor),
)
#: What has the kind of its argument: of a whole number, in Flink, a whole number.
_OF_ARGUMENT = (
    *(exp.Paren, exp.Neg, exp.Abs, exp.Nullif),
    *(exp.Round, exp.Sign, exp.Floor, exp.Ceil, exp.Min, exp.Max),
)
_NUMBERS = (*_INTEGERS, exp.DType.FLOAT, exp.DType.DOUBLE, exp.DType.DECIMAL)
_TRUTHS = (exp.Predicate, exp.Not, exp.And, exp.Or, exp.Boolean)
#: Functions of Spark's that give whole numbers, and times.
_NAMED: Mapping[str, str] = {
    **dict.fromkeys(("LOCATE", "INSTR", "ARRAY_SIZE", "YEAR", "QUARTER", "MONTH"), INTEGER),
    **dict.fromkeys(("DAYOFYEAR", "DAYOFMONTH", "DAYOFWEEK", "WEEKOFYEAR"), INTEGER),
    **dict.fromkeys(("HOUR", "MINUTE", "SECOND"), INTEGER),
    **dict.fromkeys(("DATE_TRUNC", "TIMESTAMP_MILLIS", "TIMESTAMP_SECONDS"), INSTANT),
    **dict.fromkeys(("REGEXP_LIKE", "STARTSWITH", "ENDSWITH"), TRUTH),
}
#: Of these what is known of their arguments, but for a number of digits.
_NAMED_OF_ARGUMENTS = ("GREATEST", "LEAST", "ROUND", "SIGN")


def kind_of_type(dtype: pa.DataType) -> str | None:
    """Return the kind of a type."""
    if types.is_integer(dtype):
        return INTEGER
    if types.is_timestamp(dtype):
        return INSTANT if dtype.tz in _UTC else ZONED
    if types.is_list(dtype) or types.is_large_list(dtype) or types.is_map(dtype):
        of = kind_of_type(dtype.item_type if types.is_map(dtype) else dtype.value_type)
        return None if of is None else _ELEMENTS + of
    return TRUTH if types.is_boolean(dtype) else None


def with_kinds(node: exp.Expr, of_column: KindOf) -> exp.Expr:
    """Return an expression that means what it does in Flink, as far as types are known.

    Integers are divided without a remainder, truth is written ``TRUE``, and a day that is added is
    one of 24 hours in every zone.

    Raises
    ------
    SqlError
        If a time is cast to a text, which has another form in Flink.
    """
    holder = exp.Paren(this=node.copy())
    for each in reversed([*holder.this.walk(bfs=True)]):
        rule = _RULES.get(type(each))
        found = each if rule is None else rule(each, of_column)
        if found is not each:
            found.meta.update(each.meta)
            each.replace(found)
    made = holder.this
    made.pop()
    assert isinstance(made, exp.Expr)
    return made


def kind_of(node: exp.Expr | None, of_column: KindOf) -> str | None:
    """Return whether an expression is a whole number, a time or a truth; None if not known."""
    if isinstance(node, exp.Column):
        return of_column(node)
    if isinstance(node, exp.Literal):
        return INTEGER if node.is_int else None
    if isinstance(node, exp.Length | exp.Extract):
        return INTEGER
    if isinstance(node, exp.Cast):
        return _kind_of_cast(node)
    if isinstance(node, _TRUTHS):
        return TRUTH
    if isinstance(node, exp.Anonymous):
        if node.name.upper() == "TRY_ELEMENT_AT":
            of = kind_of(node.expressions[0], of_column) or ""
            return of.removeprefix(_ELEMENTS) if of.startswith(_ELEMENTS) else None
        if node.name.upper() not in _NAMED_OF_ARGUMENTS:
            return _NAMED.get(node.name.upper())
    parts = _parts(node)
    kinds = {kind_of(each, of_column) for each in parts if not isinstance(each, exp.Null)}
    for time in (INSTANT, ZONED):
        if isinstance(node, exp.Add | exp.Sub) and time in kinds:
            return time if any(_is_interval(each) for each in parts) else None
    return kinds.pop() if len(kinds) == 1 else None


def _kind_of_cast(node: exp.Cast) -> str | None:
    to = node.to.this
    if to in _INTEGERS:
        return INTEGER
    return INSTANT if to in _INSTANTS else TRUTH if to == exp.DType.BOOLEAN else None


def _parts(node: exp.Expr | None) -> list[exp.Expr]:
    """Return the parts whose kind is that of the whole."""
    if isinstance(node, exp.Anonymous):
        whole = node.name.upper() in ("GREATEST", "LEAST")
        return [*node.expressions] if whole else node.expressions[:1]
    if isinstance(node, _OF_ARGUMENT):
        return [node.this]
    if isinstance(node, _OF_PARTS):
        return [node.this, node.expression]
    if isinstance(node, exp.Coalesce | exp.Greatest | exp.Least):
        return [node.this, *node.expressions]
    if isinstance(node, exp.If):
        return [node.args["true"], node.args.get("false") or exp.Null()]
    if isinstance(node, exp.Case):
        return [*(e.args["true"] for e in node.args["ifs"]), node.args.get("default") or exp.Null()]
    return []


def _is_interval(node: exp.Expr) -> bool:
    made = isinstance(node, exp.Anonymous) and node.name == "MAKE_INTERVAL"
    return made or isinstance(node, exp.Interval)


def _divide(node: exp.Div, of_column: KindOf) -> exp.Expr:
    kinds = {kind_of(each, of_column) for each in (node.this, node.expression)}
    if kinds != {INTEGER}:
        return node
    return exp.IntDiv(this=node.this.copy(), expression=node.expression.copy())


def _cast(node: exp.Cast, of_column: KindOf) -> exp.Expr:
    kind = kind_of(node.this, of_column)
    if node.to.this == exp.DType.DATE and kind == ZONED:
        rule = "days over Arrow tables are those of UTC: give the time as timestamp('us', 'UTC') "
        raise refused(node, f"{rule}if they are meant, or ask in a session of Spark's of that zone")
    if node.to.this in _INSTANTS and kind == INTEGER:
        raise refused(node, "a number as a time is TO_TIMESTAMP_LTZ(number, 0 or 3)")
    if node.to.this in _NUMBERS and kind in (INSTANT, ZONED):
        raise refused(node, "a time is cast to no number: TIMESTAMP and DATE are its types")
    if node.to.this not in _TEXTS:
        return node
    if kind in (INSTANT, ZONED):
        raise refused(node, "a time as a text is DATE_FORMAT(time, 'yyyy-MM-dd HH:mm:ss.SSS')")
    return exp.Upper(this=node.copy()) if kind == TRUTH else node


def _add_length(node: exp.Add | exp.Sub, of_column: KindOf) -> exp.Expr:
    """Return a time and days as one with so many seconds: Spark adds days of the session's zone."""
    time, interval = node.this, node.expression
    if isinstance(node, exp.Add) and not _holds_time(time, of_column):
        time, interval = interval, time
    if not _holds_time(time, of_column) or _holds_time(interval, of_column):
        return node
    sign = type(node)
    while isinstance(interval, exp.Paren | exp.Neg):
        if isinstance(interval, exp.Neg):
            sign = exp.Sub if sign is exp.Add else exp.Add
        interval = interval.this
    if not isinstance(interval, exp.Interval):
        if interval.find(exp.Interval) is None:
            return node
        raise refused(node, "what is added to a time is one interval, such as INTERVAL '1' DAY")
    unit = interval.args.get("unit")
    if isinstance(unit, exp.Var) and unit.name.upper().rstrip("S") in ("MONTH", "YEAR", "QUARTER"):
        raise refused(node, "months are of no fixed length: add days to a time")
    ticks = ticks_of(interval)
    if abs(ticks) < _DAY:
        return sign(this=time.copy(), expression=interval.copy())
    seconds = exp.Literal.number(_decimal(ticks))
    of = [*(exp.Literal.number(0) for _ in range(6)), seconds]
    length = exp.Anonymous(this="MAKE_INTERVAL", expressions=of)
    return sign(this=time.copy(), expression=length)


def _holds_time(node: exp.Expr, of_column: KindOf) -> bool:
    return kind_of(node, of_column) in (INSTANT, ZONED)


def _decimal(ticks: int) -> str:
    whole = Fraction(ticks, _SECOND)
    return str(whole.numerator) if whole.denominator == 1 else f"{ticks / _SECOND:.6f}"


_RULES: Mapping[type[exp.Expr], Callable[[Any, KindOf], exp.Expr]] = {
    exp.Div: _divide,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Add: _add_length,
    exp.Sub: _add_length,
}
