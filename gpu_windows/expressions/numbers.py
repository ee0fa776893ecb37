"""Arithmetic and comparisons of Arrow's that give what Spark's give."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import acero, types
from sqlglot import exp

from gpu_windows.errors import ExpressionError
from gpu_windows.expressions.places import refused

_INT = 2**31
_VALUE = "value"


@dataclass(frozen=True)
class Typed:
    """An expression of Arrow's, and the type of its values.

    Parameters
    ----------
    expression : pyarrow.compute.Expression
    dtype : pyarrow.DataType
    """

    expression: pc.Expression
    dtype: pa.DataType

    def cast(self, dtype: pa.DataType) -> Typed:
        """Return it with values of another type."""
        return self if dtype == self.dtype else Typed(self.expression.cast(dtype), dtype)


def typed(expression: pc.Expression, schema: pa.Schema) -> Typed:
    """Return an expression and the type that Arrow finds for it."""
    return Typed(expression, evaluated(expression, schema.empty_table()).type)


def evaluated(expression: pc.Expression, table: pa.Table) -> pa.ChunkedArray:
    """Return the values of an expression for the rows of a table, in their order.

    Raises
    ------
    ExpressionError
        If it has no value for a row.
    """
    source = acero.Declaration("table_source", acero.TableSourceNodeOptions(table))
    project = acero.Declaration("project", acero.ProjectNodeOptions([expression], [_VALUE]))
    try:
        found = acero.Declaration.from_sequence([source, project]).to_table(use_threads=False)
    except pa.ArrowInvalid as error:
        if not len(table):
            raise
        said = str(error).partition("\n")[0]
        raise ExpressionError("an expression has a value for each row", value=said) from None
    return found.column(_VALUE)


def number(node: exp.Literal) -> Typed:
    """Return a written number: INT or BIGINT, DECIMAL with a point, DOUBLE with an exponent."""
    text = node.this
    if "e" in text.lower():
        return Typed(pc.scalar(float(text)), pa.float64())
    if "." in text:
        value = Decimal(text)
        _, digits, exponent = value.as_tuple()
        scale = -int(exponent)
        if max(len(digits), scale) > _DIGITS:
            raise refused(node, "a number has up to 38 digits")
        dtype = pa.decimal128(max(len(digits), scale, 1), scale)
        return Typed(pc.scalar(pa.scalar(value, dtype)), dtype)
    whole = int(text)
    if not -(2**63) <= whole < 2**63:
        raise refused(node, "a whole number fits 64 bits")
    dtype = pa.int32() if -_INT <= whole < _INT else pa.int64()
    return Typed(pc.scalar(pa.scalar(whole, dtype)), dtype)


_DIGITS = 38
#: Digits of whole numbers, as Spark makes decimals of them.
_WHOLE = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}


def computed(node: exp.Binary, one: Typed, other: Typed, schema: pa.Schema) -> Typed:
    """Return a sum, a difference, a product, a quotient or a rest.

    Raises
    ------
    SqlError
        If the operands are none, or Arrow would give another type than Spark.
    """
    if _is_time(one) or _is_time(other):
        return _moved(node, one, other, schema)
    for each in (one, other):
        if not (_is_number(each.dtype) or types.is_null(each.dtype)):
            raise refused(node, f"over Arrow tables this is for numbers, not for {each.dtype}")
    one, other = _operands(node, one, other)
    make = _ARITHMETIC[type(node)]
    return typed(make(one.expression, other.expression), schema)


def _operands(node: exp.Binary, one: Typed, other: Typed) -> tuple[Typed, Typed]:
    kinds = [one.dtype, other.dtype]
    divides = isinstance(node, exp.Div)
    if isinstance(node, exp.Mod | exp.IntDiv) and not all(map(types.is_integer, kinds)):
        raise refused(node, "over Arrow tables % and DIV are for whole numbers")
    if any(map(types.is_null, kinds)):
        kind = next((each for each in kinds if not types.is_null(each)), pa.float64())
        return one.cast(kind), other.cast(kind)
    floats = any(map(types.is_floating, kinds))
    if any(map(types.is_decimal, kinds)) and not floats:
        if divides:
            rule = "a quotient of decimals has other digits in Arrow: cast an operand to DOUBLE"
            raise refused(node, rule)
        return _as_decimal(node.this, one), _as_decimal(node.expression, other)
    if divides or (floats and pa.float64() in kinds):
        return one.cast(pa.float64()), other.cast(pa.float64())
    if floats:
        kind = pa.float32() if kinds == [pa.float32()] * 2 else pa.float64()
        return one.cast(kind), other.cast(kind)
    widest = max(kinds, key=lambda kind: kind.bit_width)
    return one.cast(widest), other.cast(widest)


def _as_decimal(node: exp.Expr, of: Typed) -> Typed:
    if types.is_decimal(of.dtype):
        return of
    is_written = isinstance(node, exp.Literal)
    digits = max(len(node.name.lstrip("-")), 1) if is_written else _WHOLE[of.dtype]
    return of.cast(pa.decimal128(digits, 0))


def _rest(one: Any, other: Any) -> pc.Expression:
    return pc.subtract_checked(one, pc.multiply_checked(pc.divide_checked(one, other), other))


def _quotient(one: Any, other: Any) -> pc.Expression:
    return pc.divide_checked(one, other).cast(pa.int64())


_ARITHMETIC: Mapping[type[exp.Expr], Callable[[Any, Any], pc.Expression]] = {
    exp.Add: pc.add_checked,
    exp.Sub: pc.subtract_checked,
    exp.Mul: pc.multiply_checked,
    exp.Div: pc.divide_checked,
    exp.Mod: _rest,
    exp.IntDiv: _quotient,
}


def _is_number(dtype: pa.DataType) -> bool:
    return bool(types.is_integer(dtype) or types.is_floating(dtype) or types.is_decimal(dtype))


def _is_time(each: Typed) -> bool:
    return bool(types.is_timestamp(each.dtype) or types.is_duration(each.dtype))


def _moved(node: exp.Binary, one: Typed, other: Typed, schema: pa.Schema) -> Typed:
    make = {exp.Add: pc.add_checked, exp.Sub: pc.subtract_checked}.get(type(node))
    if make is None or not (_is_time(one) and _is_time(other)):
        raise refused(node, "a time and an INTERVAL are added or subtracted")
    return typed(make(one.expression, other.expression), schema)


# ---- comparisons


def unified(each: Sequence[Typed], node: exp.Expr) -> list[Typed]:
    """Return expressions with values of one type.

    Raises
    ------
    SqlError
        If there is none that Spark would take, too.
    """
    kinds = {one.dtype for one in each if not types.is_null(one.dtype)}
    if len(kinds) < 2:
        dtype = next(iter(kinds), pa.null())
        return [one.cast(dtype) for one in each]
    if not all(map(_is_number, kinds)):
        named = ", ".join(sorted(map(str, kinds)))
        raise refused(node, f"values are of one type over Arrow tables, not of {named}")
    if any(map(types.is_floating, kinds)):
        return [one.cast(pa.float64()) for one in each]
    if any(map(types.is_decimal, kinds)):
        decimals = [k if types.is_decimal(k) else pa.decimal128(_WHOLE[k], 0) for k in kinds]
        scale = max(kind.scale for kind in decimals)
        digits = scale + max(kind.precision - kind.scale for kind in decimals)
        if digits > _DIGITS:
            raise refused(node, "decimals of one type have up to 38 digits")
        return [one.cast(pa.decimal128(digits, scale)) for one in each]
    widest = max(kinds, key=lambda kind: kind.bit_width)
    return [one.cast(widest) for one in each]


def compared(kind: Any, one: Typed, other: Typed) -> pc.Expression:
    """Return a comparison of values of one type; NaN is itself, and more than any number."""
    if types.is_null(one.dtype):
        both = pc.scalar(pa.scalar(None, pa.bool_()))
        return pc.scalar(True) if kind is exp.NullSafeEQ else both
    a, b = one.expression, other.expression
    if kind is exp.NullSafeEQ:
        same = compared(exp.EQ, one, other)
        missing = pc.and_kleene(pc.is_null(a), pc.is_null(b))
        return pc.or_kleene(missing, pc.coalesce(same, pc.scalar(False)))
    if kind in (exp.NEQ, exp.GT, exp.GTE):
        opposite = {exp.NEQ: exp.EQ, exp.GT: exp.LTE, exp.GTE: exp.LT}[kind]
        return pc.invert(compared(opposite, one, other))
    plain = {exp.EQ: pc.equal, exp.LT: pc.less, exp.LTE: pc.less_equal}[kind](a, b)
    if not types.is_floating(one.dtype):
        return plain
    its = pc.is_nan(b)
    ours = {
        exp.EQ: pc.and_kleene(pc.is_nan(a), its),
        exp.LT: pc.and_kleene(pc.invert(pc.is_nan(a)), its),
        exp.LTE: its,
    }[kind]
    are_there = pc.and_kleene(pc.is_valid(a), pc.is_valid(b))
    return pc.if_else(are_there, pc.or_kleene(plain, ours), pc.scalar(pa.scalar(None, pa.bool_())))
