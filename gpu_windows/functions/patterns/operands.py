"""Operands of conditions: instructions, the type of the value they push, and constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

import pyarrow as pa
from pyarrow import types
from sqlglot import exp

from gpu_windows.expressions.arrow import compute
from gpu_windows.expressions.sql_text import sql_error
from gpu_windows.functions.patterns.program import Instruction
from gpu_windows.functions.patterns.value_types import (
    DOUBLE,
    DURATION,
    LONG,
    NULL,
    TypeClass,
    ValueType,
    value_type,
)
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.rules.pattern_matching import layout

#: Comparisons: the instruction, whether operands are swapped, and whether the result is negated.
COMPARISONS: Mapping[type[exp.Expr], tuple[int, bool, bool]] = {
    exp.EQ: (layout.EQUAL, False, False),
    exp.NEQ: (layout.EQUAL, False, True),
    exp.LT: (layout.LESS, False, False),
    exp.LTE: (layout.LESS_OR_EQUAL, False, False),
    exp.GT: (layout.LESS, True, False),
    exp.GTE: (layout.LESS_OR_EQUAL, True, False),
}
#: Comparisons of swapped operands.
MIRRORED: Mapping[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT,
    exp.GT: exp.LT,
    exp.LTE: exp.GTE,
    exp.GTE: exp.LTE,
}
#: Arithmetic.
ARITHMETIC: Mapping[type[exp.Expr], int] = {
    exp.Add: layout.ADD,
    exp.Sub: layout.SUBTRACT,
    exp.Mul: layout.MULTIPLY,
    exp.Div: layout.DIVIDE,
    exp.Mod: layout.MODULO,
    exp.IntDiv: layout.QUOTIENT,
}
#: The running state of aggregates.
AGGREGATE_STATES: Mapping[type[exp.Expr], int] = {
    exp.Sum: layout.SUM,
    exp.Avg: layout.SUM,
    exp.Min: layout.MIN,
    exp.Max: layout.MAX,
}

#: Operations that may fail for a row, such as a quotient by 0.
MAY_FAIL = (exp.Div, exp.Mod, exp.IntDiv)
#: Nodes of literal constants, in addition to literals, comparisons and arithmetic.
_LITERAL_PARTS = (
    *(exp.Boolean, exp.Null, exp.Interval, exp.Var, exp.IntervalSpan, exp.Paren, exp.Neg, exp.Not),
    *(exp.And, exp.Or, exp.Cast, exp.DataType, exp.DataTypeParam),
)
Code = list[Instruction]


@dataclass(frozen=True)
class Operand:
    """Instructions, and the type of the value that they push on the stack.

    Parameters
    ----------
    code : list of Instruction
    type : ValueType
    constant : decimal.Decimal, optional
        A literal with a decimal point, which is converted to the type of the other operand.
    """

    code: Code
    type: ValueType
    constant: Decimal | None = None


def apply(
    does: int, operand_type: ValueType, *operands: Operand, first: int = 0, second: int = 0
) -> Operand:
    """Return the value that an instruction computes of operands, which are pushed before it."""
    code = [each for operand in operands for each in operand.code]
    return Operand([*code, Instruction(does, first, second)], operand_type)


class Columns(Protocol):
    """Columns of the input, to which expressions over a row are added."""

    def name(self, text: str) -> str:
        """Return the name of the column of an expression."""

    def dtype(self, name: str) -> pa.DataType:
        """Return the type of a column."""


class Constants:
    """Constants of conditions: for each an integer, a float, and whether it is null."""

    def __init__(self) -> None:
        self.values: list[tuple[int, float, bool]] = []

    def of(self, node: exp.Expr) -> Operand:
        """Return a literal constant as an operand."""
        found = compute(node, pa.table({"one": [0]}))[0]
        if types.is_decimal(found.type) and found.is_valid:
            return Operand([], NULL, found.as_py())
        operand_type = value_type(found.type)
        assert operand_type is not None, "literals are numbers, booleans, durations and NULL"
        if not found.is_valid:
            return self.push(0, 0.0, operand_type, is_null=True)
        if operand_type.is_float:
            return self.push(0, float(found.as_py()), operand_type)
        return self.push(int(found.cast(pa.int64()).as_py()), 0.0, operand_type)

    def push(
        self, whole: int, real: float, operand_type: ValueType, *, is_null: bool = False
    ) -> Operand:
        """Return an operand that pushes a constant on the stack."""
        self.values.append((whole, real, is_null))
        return Operand([Instruction(layout.CONSTANT, len(self.values) - 1)], operand_type)

    def convert_both(self, one: Operand, other: Operand) -> tuple[Operand, Operand]:
        """Convert literals with a decimal point to the type of the other operand."""
        return self._convert(one, other.type), self._convert(other, one.type)

    def unify(self, node: exp.Expr, one: Operand, other: Operand) -> tuple[Operand, Operand]:
        """Convert two operands to types that can be compared.

        Raises
        ------
        SqlError
            If there are none.
        """
        one, other = self.convert_both(one, other)
        if one.type.is_number and other.type.is_number:
            if one.type.is_float or other.type.is_float:
                return as_float(one), as_float(other)
            return one, other
        if NULL in (one.type, other.type):
            operand_type = other.type if one.type == NULL else one.type
            return Operand(one.code, operand_type), Operand(other.code, operand_type)
        if (one.type.type_class, one.type.name) != (other.type.type_class, other.type.name):
            rule = (
                "rows can be compared by values of the same type: use CAST; these are "
                f"{one.type.describe()} and {other.type.describe()}"
            )
            raise sql_error(node, rule)
        return one, other

    def _convert(self, operand: Operand, other: ValueType) -> Operand:
        if operand.constant is None:
            return operand
        if other.type_class is TypeClass.INTEGER and is_long(operand.constant):
            return self.push(int(operand.constant), 0.0, LONG)
        return self.push(0, float(operand.constant), DOUBLE)


def is_long(value: Decimal) -> bool:
    """Whether it is an integer of 64 bits; other values compare the same as floats."""
    return value == int(value) and LONG_MIN < value < LONG_MAX


def is_literal(node: exp.Expr) -> bool:
    """Whether an expression consists of literal numbers, booleans and durations.

    Other constants are columns, because Spark's settings change the meaning of strings and times.
    """
    if isinstance(node, exp.Literal):
        return not node.is_string
    kinds: Any = (*_LITERAL_PARTS, *COMPARISONS, *ARITHMETIC)
    return isinstance(node, kinds) and all(map(is_literal, node.iter_expressions()))


def as_float(operand: Operand) -> Operand:
    """Convert an operand to a float."""
    if operand.type.is_float:
        return operand
    return apply(layout.TO_FLOAT, DOUBLE, operand)


def check_number(node: exp.Expr, operand_type: ValueType) -> None:
    """Raise `SqlError` unless arithmetic between rows takes the type."""
    if not operand_type.is_number:
        rule = f"arithmetic between rows takes numbers, got {operand_type.describe()}"
        raise sql_error(node, rule)
    if operand_type.is_float and operand_type.bits < 64:
        raise sql_error(node, "arithmetic between rows takes DOUBLE, got FLOAT: use CAST")


def time_arithmetic(node: exp.Binary, one: Operand, other: Operand) -> Operand | None:
    """Return a sum or difference of times and durations; None for other types.

    Raises
    ------
    SqlError
        If these cannot be added or subtracted.
    """
    kinds = (one.type.type_class, other.type.type_class)
    is_sum, is_difference = isinstance(node, exp.Add), isinstance(node, exp.Sub)
    if not (is_sum or is_difference) or not {TypeClass.TIMESTAMP, TypeClass.DURATION} & {*kinds}:
        return None
    if (
        kinds == (TypeClass.TIMESTAMP, TypeClass.TIMESTAMP)
        and is_difference
        and one.type == other.type
    ) or kinds == (TypeClass.DURATION, TypeClass.DURATION):
        operand_type = DURATION
    elif kinds == (TypeClass.TIMESTAMP, TypeClass.DURATION):
        operand_type = one.type
    elif kinds == (TypeClass.DURATION, TypeClass.TIMESTAMP) and is_sum:
        operand_type = other.type
    else:
        names = f"{one.type.describe()} and {other.type.describe()}"
        raise sql_error(node, f"these cannot be added or subtracted: {names}")
    return apply(ARITHMETIC[type(node)], operand_type, one, other, first=64)
