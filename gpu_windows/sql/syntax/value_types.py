"""Rules that depend on types: integer division, casts, and durations added to times."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import pyarrow as pa
from pyarrow import types
from sqlglot import exp

from gpu_windows.expressions.dialect import FUNCTION_NAME
from gpu_windows.expressions.intervals import interval_months, interval_ticks
from gpu_windows.expressions.sql_text import sql_error
from gpu_windows.sql.syntax.functions.building import (
    TypedCall,
    call_errors,
    number,
    spark_function,
    string,
    template,
)
from gpu_windows.sql.syntax.functions.times import MONTHS, seconds_interval
from gpu_windows.sql.syntax.type_names import (
    BOOLEAN,
    CLOCK_TIME,
    DATE,
    DECIMAL,
    ELEMENTS,
    FLOATING,
    INTEGER,
    SECOND_DIGITS,
    TEXT,
    TIMESTAMP,
    VALUE_TYPE,
    ZONED_TIMESTAMP,
    with_type,
)
from gpu_windows.sql.syntax.typed_functions import lower_call, time_text
from gpu_windows.vocabulary.options import TICKS

#: Returns the type of a column; None if it is not known.
TypeOfColumn: TypeAlias = Callable[[exp.Column], "str | None"]

_IN_UTC = (
    "give the time as timestamp('us', 'UTC') for those, or query in a Spark session of that zone"
)
_UTC = ("UTC", "Etc/UTC", "Z", "+00:00", "GMT")
_INTEGERS = (
    *(exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT),
    exp.DType.UINT,
)
#: Both are TIMESTAMP without a zone in the text of a statement, as sqlglot parses it.
_CLOCK_TIMES = (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ)
_TIMESTAMPS = (*_CLOCK_TIMES, exp.DType.TIMESTAMPLTZ)
_NODE_TYPES = (
    ((exp.Upper, exp.Lower, exp.Concat, exp.DPipe, exp.Trim), TEXT),
    ((exp.Length, exp.Extract), INTEGER),
    ((exp.Predicate, exp.Not, exp.And, exp.Or, exp.Boolean), BOOLEAN),
)
_STRINGS = (exp.DType.TEXT, exp.DType.VARCHAR)
_OPERAND_TYPED = (
    *(exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.IntDiv),
    *(exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor),
)
#: Functions whose type in Flink is that of their argument, such as integer for an integer.
_ARGUMENT_TYPED = (
    *(exp.Paren, exp.Neg, exp.Abs, exp.Nullif, exp.Floor, exp.Ceil, exp.Min, exp.Max),
)
_NUMBERS = (*_INTEGERS, exp.DType.FLOAT, exp.DType.DOUBLE, exp.DType.DECIMAL)
_TIMES = (TIMESTAMP, ZONED_TIMESTAMP, CLOCK_TIME)
#: Types of Spark's functions by name.
_FUNCTION_TYPES: Mapping[str, str] = {
    name: kind
    for kind, names in {
        INTEGER: "LOCATE INSTR SIZE ASCII REGEXP_COUNT REGEXP_INSTR UNIX_SECONDS ARRAY_POSITION",
        TIMESTAMP: "DATE_TRUNC TIMESTAMP_MILLIS TIMESTAMP_SECONDS TIMESTAMP_MICROS "
        "TRY_TO_TIMESTAMP",
        BOOLEAN: "REGEXP_LIKE STARTSWITH ENDSWITH ARRAY_CONTAINS",
        FLOATING: "SQRT EXP LN POWER PI E SIN COS TAN",
        TEXT: "SUBSTRING LEFT RIGHT REPEAT REVERSE REPLACE TRANSLATE LPAD RPAD CONCAT_WS "
        "DATE_FORMAT REGEXP_EXTRACT REGEXP_REPLACE MD5 SHA1 SHA2 BASE64 HEX BIN CHR "
        "GET_JSON_OBJECT FLINK_INITCAP ARRAY_JOIN",
    }.items()
    for name in names.split()
}
#: Functions by name whose type is that of their arguments, a number of digits aside.
_ARGUMENT_TYPED_FUNCTIONS = ("GREATEST", "LEAST", "ROUND", "SIGN")


def value_type(dtype: pa.DataType) -> str | None:
    """Return the value type of an Arrow type; None if rules do not depend on it."""
    if types.is_integer(dtype):
        return INTEGER
    if types.is_timestamp(dtype):
        if dtype.tz is None:
            return CLOCK_TIME
        return TIMESTAMP if dtype.tz in _UTC else ZONED_TIMESTAMP
    for is_type, name in _TYPE_TESTS:
        if is_type(dtype):
            return name
    if types.is_list(dtype) or types.is_large_list(dtype) or types.is_map(dtype):
        element = value_type(dtype.item_type if types.is_map(dtype) else dtype.value_type)
        return None if element is None else ELEMENTS + element
    return None


_TYPE_TESTS: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (types.is_boolean, BOOLEAN),
    (types.is_floating, FLOATING),
    (types.is_decimal, DECIMAL),
    (types.is_date, DATE),
    (types.is_string, TEXT),
    (types.is_large_string, TEXT),
)


def apply_type_rules(node: exp.Expr, type_of_column: TypeOfColumn) -> exp.Expr:
    """Return an expression with Flink's meaning in Spark, as far as types are known.

    Integers are divided without a remainder, booleans are cast to strings as ``TRUE``, and an added
    day has 24 hours in every zone.

    Raises
    ------
    SqlError
        If a time is cast to a number, and the like.
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
    if node is not None and VALUE_TYPE in node.meta:
        return str(node.meta[VALUE_TYPE])
    if isinstance(node, exp.Column):
        return type_of_column(node)
    if isinstance(node, exp.Literal):
        return _type_of_literal(node)
    if isinstance(node, exp.Cast):
        return _CAST_TYPES.get(node.to.this)
    for kinds, name in _NODE_TYPES:
        if isinstance(node, kinds):
            return name
    if isinstance(node, exp.Anonymous) and node.name.upper() not in _ARGUMENT_TYPED_FUNCTIONS:
        return _type_of_call(node, type_of_column)
    parts = _parts(node)
    part_types = {
        infer_type(each, type_of_column) for each in parts if not isinstance(each, exp.Null)
    }
    for time in _TIMES:
        if isinstance(node, exp.Add | exp.Sub) and time in part_types:
            return time if any(_is_interval(each) for each in parts) else None
    if len(part_types) > 1 and part_types <= {*_TIMES}:  # instants, as in Flink
        return ZONED_TIMESTAMP if ZONED_TIMESTAMP in part_types else TIMESTAMP
    if len(part_types) > 1 and part_types <= {INTEGER, DECIMAL, FLOATING}:
        return FLOATING if FLOATING in part_types else DECIMAL
    return part_types.pop() if len(part_types) == 1 else None


def _type_of_call(node: exp.Anonymous, type_of_column: TypeOfColumn) -> str | None:
    if node.name.upper() == "ARRAY":
        parts = {infer_type(each, type_of_column) for each in node.expressions}
        return f"{ELEMENTS}{parts.pop()}" if len(parts) == 1 and None not in parts else None
    if node.name.upper() != "TRY_ELEMENT_AT":
        return _FUNCTION_TYPES.get(node.name.upper())
    owner = infer_type(node.expressions[0], type_of_column) or ""
    return owner.removeprefix(ELEMENTS) if owner.startswith(ELEMENTS) else None


def _type_of_literal(node: exp.Literal) -> str:
    if node.is_string:
        return TEXT
    return INTEGER if node.is_int else FLOATING if "e" in node.name.lower() else DECIMAL


_CAST_TYPES: Mapping[Any, str] = {
    **dict.fromkeys(_INTEGERS, INTEGER),
    **dict.fromkeys(_STRINGS, TEXT),
    **dict.fromkeys((*_CLOCK_TIMES, exp.DType.TIMESTAMPNTZ), CLOCK_TIME),
    exp.DType.TIMESTAMPLTZ: TIMESTAMP,
    exp.DType.BOOLEAN: BOOLEAN,
    exp.DType.DATE: DATE,
    exp.DType.FLOAT: FLOATING,
    exp.DType.DOUBLE: FLOATING,
    exp.DType.DECIMAL: DECIMAL,
}


def _parts(node: exp.Expr | None) -> list[exp.Expr]:
    """Return the parts that determine the type of an expression."""
    if isinstance(node, exp.Anonymous):
        whole = node.name.upper() in ("GREATEST", "LEAST")
        return [*node.expressions] if whole else node.expressions[:1]
    if isinstance(node, _ARGUMENT_TYPED):
        return [node.this]
    if isinstance(node, _OPERAND_TYPED):
        return [node.this, node.expression]
    if isinstance(node, exp.Coalesce):
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
    operands = [node.this.copy(), node.expression.copy()]
    part_types = {infer_type(each, type_of_column) for each in operands}
    if part_types == {INTEGER, DECIMAL}:  # a literal has the digits of an INT, as in Flink
        one, other = (exp.cast(e, "INT") if _is_whole_literal(e) else e for e in operands)
        return exp.Div(this=one, expression=other)
    if part_types != {INTEGER}:
        return node
    return exp.IntDiv(this=operands[0], expression=operands[1])


def _is_whole_literal(node: exp.Expr) -> bool:
    of = node.this if isinstance(node, exp.Neg) else node
    return isinstance(of, exp.Literal) and of.is_int and int(of.name) < 2**31


def _cast(node: exp.Cast, type_of_column: TypeOfColumn) -> exp.Expr:
    inferred = infer_type(node.this, type_of_column)
    if node.to.this == exp.DType.DATE and inferred == ZONED_TIMESTAMP:
        raise sql_error(node, f"over Arrow tables dates are in UTC: {_IN_UTC}")
    if node.to.this in _TIMESTAMPS and inferred == INTEGER:
        raise sql_error(node, "convert a number to a time with TO_TIMESTAMP_LTZ(number, 0 or 3)")
    if node.to.this in _NUMBERS and inferred in _TIMES:
        raise sql_error(node, "a time can be cast to TIMESTAMP and DATE, not to a number")
    if node.to.this in _TIMESTAMPS:
        return _cast_to_time(node, inferred)
    if node.to.this not in _STRINGS:
        return node
    if inferred is not None and inferred.startswith(ELEMENTS):
        raise sql_error(node, "a list or a map is not cast AS STRING: use ARRAY_JOIN of a list")
    if inferred == ZONED_TIMESTAMP:
        raise sql_error(node, f"over Arrow tables texts of times are in UTC: {_IN_UTC}")
    if inferred in _TIMES:
        return time_text(node.this)
    return exp.Upper(this=node.copy()) if inferred == BOOLEAN else node


#: What digits of seconds times are truncated to by a cast.
_PRECISIONS = {"0": "SECOND", "3": "MILLISECOND"}


def _cast_to_time(node: exp.Cast, inferred: str | None) -> exp.Expr:
    """Return a cast AS TIMESTAMP or TIMESTAMP_LTZ, without the digits of seconds it has not."""
    text = node.to.expressions[0].name if node.to.expressions else "6"
    if text not in {"0", "3", "6"}:
        raise sql_error(node, "a time is cast AS TIMESTAMP(0), TIMESTAMP(3) or TIMESTAMP(6)")
    is_clock_time = node.to.this in _CLOCK_TIMES
    if is_clock_time and inferred == ZONED_TIMESTAMP:
        raise sql_error(node, f"over Arrow tables clock times are in UTC: {_IN_UTC}")
    made: exp.Expr = node
    if text in _PRECISIONS:
        instant = _with_target(node, node.this, "TIMESTAMP_LTZ")
        is_time = is_clock_time and inferred in _TIMES
        of = node.this.copy() if is_time else instant
        made = spark_function("DATE_TRUNC")(string(_PRECISIONS[text]), of)
    if is_clock_time:
        made = _with_target(node, node.this if made is node else made, "TIMESTAMP_NTZ")
    is_literal = isinstance(node.this, exp.Literal) and not node.to.expressions
    fraction = len(node.this.name.partition(".")[2]) if is_literal else int(text)
    made = with_type(made, CLOCK_TIME if is_clock_time else TIMESTAMP)
    made.meta[SECOND_DIGITS] = min(fraction, 6)
    return made


def _with_target(node: exp.Cast, of: exp.Expr, name: str) -> exp.Cast:
    """Return the same kind of cast, CAST or TRY_CAST, of another value to another type."""
    made = node.copy()
    made.set("this", of.copy())
    made.set("to", exp.DataType.build(name, dialect="spark"))
    return made


def _add_interval(node: exp.Add | exp.Sub, type_of_column: TypeOfColumn) -> exp.Expr:
    """Return a sum or difference of a time or a DATE and an INTERVAL."""
    one, other = (infer_type(each, type_of_column) for each in (node.this, node.expression))
    times = (DATE,) if DATE in (one, other) else _TIMES
    time, interval = node.this, node.expression
    if isinstance(node, exp.Add) and one not in times:
        time, interval, one, other = interval, time, other, one
    if one not in times or other in times:
        return node
    sign = -1 if isinstance(node, exp.Sub) else 1
    while isinstance(interval, exp.Paren | exp.Neg):
        sign = -sign if isinstance(interval, exp.Neg) else sign
        interval = interval.this
    if isinstance(interval, exp.Interval):
        add = _add_to_date if DATE in times else _add_to_time
        return add(node, time, interval, sign)
    if DATE in times or interval.find(exp.Interval) is None:
        return node
    raise sql_error(node, "add one interval to a time, such as INTERVAL '1' DAY")


def _add_to_time(node: exp.Expr, time: exp.Expr, interval: exp.Interval, sign: int) -> exp.Expr:
    """Write days added to a time as seconds, because Spark adds calendar days of its zone."""
    unit = interval.args.get("unit")
    if isinstance(unit, exp.Var) and unit.name.upper().rstrip("S") in MONTHS:
        raise sql_error(node, "months have no fixed length: add days to a time")
    ticks = interval_ticks(interval)
    length = interval.copy() if abs(ticks) < TICKS["day"] else seconds_interval(_seconds(ticks))
    return (exp.Add if sign > 0 else exp.Sub)(this=time.copy(), expression=length)


def _seconds(ticks: int) -> exp.Expr:
    whole, rest = divmod(ticks, TICKS["second"])
    return exp.Literal.number(f"{ticks / TICKS['second']:.6f}" if rest else whole)


def _add_to_date(node: exp.Expr, date: exp.Expr, interval: exp.Interval, sign: int) -> exp.Expr:
    """Return a DATE that an INTERVAL of whole days or months is added to."""
    months = interval_months(interval)
    if months is not None:
        return with_type(spark_function("ADD_MONTHS")(date.copy(), number(sign * months)), DATE)
    days, rest = divmod(interval_ticks(interval), TICKS["day"])
    if rest:
        raise sql_error(node, "a DATE takes intervals of whole days: cast it AS TIMESTAMP")
    return with_type(spark_function("DATE_ADD")(date.copy(), number(sign * days)), DATE)


def _lower(node: TypedCall, type_of_column: TypeOfColumn) -> exp.Expr:
    """Return a call whose expression depends on the types of its arguments."""
    part_types = [infer_type(each, type_of_column) for each in node.expressions]
    with call_errors(node, node.meta.get(FUNCTION_NAME, node.name).upper()):
        return lower_call(node, part_types)


_WHOLE = "CASE WHEN ABS(a) < 4503599627370496 THEN CAST({name}(a) AS DOUBLE) ELSE a END"
_WHOLES = {
    exp.Floor: template(_WHOLE.format(name="FLOOR")),
    exp.Ceil: template(_WHOLE.format(name="CEIL")),
}


def _whole(node: exp.Floor | exp.Ceil, type_of_column: TypeOfColumn) -> exp.Expr:
    """Return FLOOR or CEIL: a DOUBLE of a DOUBLE, and an integer of an integer."""
    inferred = infer_type(node.this, type_of_column)
    if inferred == INTEGER:
        return exp.Paren(this=node.this.copy())
    if inferred != FLOATING or node.meta.get(VALUE_TYPE) == INTEGER:
        return node
    made = exp.Paren(this=_WHOLES[type(node)](node.this))
    for each in made.find_all(exp.Floor, exp.Ceil):
        with_type(each, INTEGER)
    return with_type(made, FLOATING)


_RULES: Mapping[type[exp.Expr], Callable[[Any, TypeOfColumn], exp.Expr]] = {
    exp.Div: _divide,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Add: _add_interval,
    exp.Sub: _add_interval,
    TypedCall: _lower,
    exp.Floor: _whole,
    exp.Ceil: _whole,
}
