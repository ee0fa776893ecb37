"""Rules that depend on types: integer division, casts, and durations added to times."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, TypeAlias

import pyarrow as pa
from pyarrow import types
from sqlglot import exp

from gpu_windows.expressions.intervals import interval_ticks
from gpu_windows.expressions.sql_text import sql_error

#: Returns the type of a column; None if it is not known.
TypeOfColumn: TypeAlias = Callable[[exp.Column], "str | None"]

INTEGER, TIMESTAMP, BOOLEAN = "integer", "timestamp", "boolean"
#: Timestamps in a zone other than UTC, which is the zone of dates over Arrow tables.
ZONED_TIMESTAMP = "zoned timestamp"
#: Prefix of the type of a list with these elements, or a map with these values.
_ELEMENTS = "elements: "
_UTC = (None, "UTC", "Etc/UTC", "Z", "+00:00", "GMT")
_DAY = 86_400_000_000
_SECOND = 1_000_000
_INTEGERS = (
    *(exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT),
    exp.DType.UINT,
)
_TIMESTAMPS = (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ)
_STRINGS = (exp.DType.TEXT, exp.DType.VARCHAR)
_OPERAND_TYPED = (
    *(exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.IntDiv),
    *(exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor),
)
#: Functions whose type in Flink is that of their argument, such as integer for an integer.
_ARGUMENT_TYPED = (
    *(exp.Paren, exp.Neg, exp.Abs, exp.Nullif),
    *(exp.Round, exp.Sign, exp.Floor, exp.Ceil, exp.Min, exp.Max),
)
_NUMBERS = (*_INTEGERS, exp.DType.FLOAT, exp.DType.DOUBLE, exp.DType.DECIMAL)
_BOOLEANS = (exp.Predicate, exp.Not, exp.And, exp.Or, exp.Boolean)
#: Types of Spark's functions by name.
_FUNCTION_TYPES: Mapping[str, str] = {
    **dict.fromkeys(("LOCATE", "INSTR", "ARRAY_SIZE", "YEAR", "QUARTER", "MONTH"), INTEGER),
    **dict.fromkeys(("DAYOFYEAR", "DAYOFMONTH", "DAYOFWEEK", "WEEKOFYEAR"), INTEGER),
    **dict.fromkeys(("HOUR", "MINUTE", "SECOND"), INTEGER),
    **dict.fromkeys(("DATE_TRUNC", "TIMESTAMP_MILLIS", "TIMESTAMP_SECONDS"), TIMESTAMP),
    **dict.fromkeys(("REGEXP_LIKE", "STARTSWITH", "ENDSWITH"), BOOLEAN),
}
#: Functions by name whose type is that of their arguments, a number of digits aside.
_ARGUMENT_TYPED_FUNCTIONS = ("GREATEST", "LEAST", "ROUND", "SIGN")


def value_type(dtype: pa.DataType) -> str | None:
    """Return the value type of an Arrow type; None if rules do not depend on it."""
    if types.is_integer(dtype):
        return INTEGER
    if types.is_timestamp(dtype):
        return TIMESTAMP if dtype.tz in _UTC else ZONED_TIMESTAMP
    if types.is_list(dtype) or types.is_large_list(dtype) or types.is_map(dtype):
        element = value_type(dtype.item_type if types.is_map(dtype) else dtype.value_type)
        return None if element is None else _ELEMENTS + element
    return BOOLEAN if types.is_boolean(dtype) else None


def apply_type_rules(node: exp.Expr, type_of_column: TypeOfColumn) -> exp.Expr:
    """Return an expression with Flink's meaning in Spark, as far as types are known.

    Integers are divided without a remainder, booleans are cast to strings as ``TRUE``, and an added
    day has 24 hours in every zone.

    Raises
    ------
    SqlError
        If a time is cast to a string, which Flink formats differently.
    """
    holder = exp.Paren(this=node.copy())
    for each in reversed([*holder.this.walk(bfs=True)]):
        rule = _RULES.get(type(each))
        found = each if rule is None else rule(each, type_of_column)
        if found is not each:
            found.meta.update(each.meta)
            each.replace(found)
    made = holder.this
    made.pop()
    assert isinstance(made, exp.Expr)
    return made


def infer_type(node: exp.Expr | None, type_of_column: TypeOfColumn) -> str | None:
    """Return the value type of an expression; None if it is not known."""
    if isinstance(node, exp.Column):
        return type_of_column(node)
    if isinstance(node, exp.Literal):
        return INTEGER if node.is_int else None
    if isinstance(node, exp.Length | exp.Extract):
        return INTEGER
    if isinstance(node, exp.Cast):
        return _type_of_cast(node)
    if isinstance(node, _BOOLEANS):
        return BOOLEAN
    if isinstance(node, exp.Anonymous):
        if node.name.upper() == "TRY_ELEMENT_AT":
            owner = infer_type(node.expressions[0], type_of_column) or ""
            return owner.removeprefix(_ELEMENTS) if owner.startswith(_ELEMENTS) else None
        if node.name.upper() not in _ARGUMENT_TYPED_FUNCTIONS:
            return _FUNCTION_TYPES.get(node.name.upper())
    parts = _parts(node)
    part_types = {
        infer_type(each, type_of_column) for each in parts if not isinstance(each, exp.Null)
    }
    for time in (TIMESTAMP, ZONED_TIMESTAMP):
        if isinstance(node, exp.Add | exp.Sub) and time in part_types:
            return time if any(_is_interval(each) for each in parts) else None
    return part_types.pop() if len(part_types) == 1 else None


def _type_of_cast(node: exp.Cast) -> str | None:
    to = node.to.this
    if to in _INTEGERS:
        return INTEGER
    return TIMESTAMP if to in _TIMESTAMPS else BOOLEAN if to == exp.DType.BOOLEAN else None


def _parts(node: exp.Expr | None) -> list[exp.Expr]:
    """Return the parts that determine the type of an expression."""
    if isinstance(node, exp.Anonymous):
        whole = node.name.upper() in ("GREATEST", "LEAST")
        return [*node.expressions] if whole else node.expressions[:1]
    if isinstance(node, _ARGUMENT_TYPED):
        return [node.this]
    if isinstance(node, _OPERAND_TYPED):
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


def _divide(node: exp.Div, type_of_column: TypeOfColumn) -> exp.Expr:
    part_types = {infer_type(each, type_of_column) for each in (node.this, node.expression)}
    if part_types != {INTEGER}:
        return node
    return exp.IntDiv(this=node.this.copy(), expression=node.expression.copy())


def _cast(node: exp.Cast, type_of_column: TypeOfColumn) -> exp.Expr:
    inferred = infer_type(node.this, type_of_column)
    if node.to.this == exp.DType.DATE and inferred == ZONED_TIMESTAMP:
        rule = "over Arrow tables dates are in UTC: give the time as timestamp('us', 'UTC') "
        raise sql_error(node, f"{rule}for those, or query in a Spark session of that zone")
    if node.to.this in _TIMESTAMPS and inferred == INTEGER:
        raise sql_error(node, "convert a number to a time with TO_TIMESTAMP_LTZ(number, 0 or 3)")
    if node.to.this in _NUMBERS and inferred in (TIMESTAMP, ZONED_TIMESTAMP):
        raise sql_error(node, "a time can be cast to TIMESTAMP and DATE, not to a number")
    if node.to.this not in _STRINGS:
        return node
    if inferred in (TIMESTAMP, ZONED_TIMESTAMP):
        raise sql_error(node, "format a time with DATE_FORMAT(time, 'yyyy-MM-dd HH:mm:ss.SSS')")
    return exp.Upper(this=node.copy()) if inferred == BOOLEAN else node


def _add_duration(node: exp.Add | exp.Sub, type_of_column: TypeOfColumn) -> exp.Expr:
    """Write days added to a time as seconds, because Spark adds calendar days of its zone."""
    time, interval = node.this, node.expression
    if isinstance(node, exp.Add) and not _is_time(time, type_of_column):
        time, interval = interval, time
    if not _is_time(time, type_of_column) or _is_time(interval, type_of_column):
        return node
    sign = type(node)
    while isinstance(interval, exp.Paren | exp.Neg):
        if isinstance(interval, exp.Neg):
            sign = exp.Sub if sign is exp.Add else exp.Add
        interval = interval.this
    if not isinstance(interval, exp.Interval):
        if interval.find(exp.Interval) is None:
            return node
        raise sql_error(node, "add one interval to a time, such as INTERVAL '1' DAY")
    unit = interval.args.get("unit")
    if isinstance(unit, exp.Var) and unit.name.upper().rstrip("S") in ("MONTH", "YEAR", "QUARTER"):
        raise sql_error(node, "months have no fixed length: add days to a time")
    ticks = interval_ticks(interval)
    if abs(ticks) < _DAY:
        return sign(this=time.copy(), expression=interval.copy())
    seconds = exp.Literal.number(_decimal(ticks))
    arguments = [*(exp.Literal.number(0) for _ in range(6)), seconds]
    length = exp.Anonymous(this="MAKE_INTERVAL", expressions=arguments)
    return sign(this=time.copy(), expression=length)


def _is_time(node: exp.Expr, type_of_column: TypeOfColumn) -> bool:
    return infer_type(node, type_of_column) in (TIMESTAMP, ZONED_TIMESTAMP)


def _decimal(ticks: int) -> str:
    whole = Fraction(ticks, _SECOND)
    return str(whole.numerator) if whole.denominator == 1 else f"{ticks / _SECOND:.6f}"


_RULES: Mapping[type[exp.Expr], Callable[[Any, TypeOfColumn], exp.Expr]] = {
    exp.Div: _divide,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Add: _add_duration,
    exp.Sub: _add_duration,
}
