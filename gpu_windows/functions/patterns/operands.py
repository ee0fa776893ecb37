"""Operands of conditions: instructions, what they leave on the stack, and constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

import pyarrow as pa
from pyarrow import types
from sqlglot import exp

from gpu_windows.expressions.arrow import compute
from gpu_windows.expressions.places import refused
from gpu_windows.functions.patterns.kinds import DOUBLE, LONG, NOTHING, Kind, Meaning, kind_of
from gpu_windows.functions.patterns.program import Instruction
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.rules.pattern_matching import layout

#: Comparisons: what is done, whether operands are swapped, and whether that is inverted.
COMPARED: Mapping[type[exp.Expr], tuple[int, bool, bool]] = {
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
COMPUTED: Mapping[type[exp.Expr], int] = {
    exp.Add: layout.ADD,
    exp.Sub: layout.SUBTRACT,
    exp.Mul: layout.MULTIPLY,
    exp.Div: layout.DIVIDE,
    exp.Mod: layout.MODULO,
    exp.IntDiv: layout.QUOTIENT,
}
#: What aggregates keep.
KEEPS: Mapping[type[exp.Expr], int] = {
    exp.Sum: layout.SUM,
    exp.Avg: layout.SUM,
    exp.Min: layout.LEAST,
    exp.Max: layout.GREATEST,
}

#: What may have no value for a row.
MAY_FAIL = (exp.Div, exp.Mod, exp.IntDiv)
#: What constants are made of besides, where they are written out.
_WRITTEN = (
    *(exp.Boolean, exp.Null, exp.Interval, exp.Var, exp.IntervalSpan, exp.Paren, exp.Neg, exp.Not),
    *(exp.And, exp.Or, exp.Cast, exp.DataType, exp.DataTypeParam),
)
Code = list[Instruction]


@dataclass(frozen=True)
class Made:
    """Instructions, and what they leave on the stack.

    Parameters
    ----------
    code : list of Instruction
    kind : Kind
    constant : decimal.Decimal, optional
        A number with a point that is written out, which is made what the other operand is.
    """

    code: Code
    kind: Kind
    constant: Decimal | None = None


class Columns(Protocol):
    """Columns of the input, to which expressions over a row are added."""

    def name(self, text: str) -> str:
        """Return the name of the column of an expression."""

    def dtype(self, name: str) -> pa.DataType:
        """Return the type of a column."""


class Constants:
    """What conditions compute with: integers, floats, and whether each is null."""

    def __init__(self) -> None:
        self.known: list[tuple[int, float, bool]] = []

    def of(self, node: exp.Expr) -> Made:
        """Return a value that is written out."""
        found = compute(node, pa.table({"one": [0]}))[0]
        if types.is_decimal(found.type) and found.is_valid:
            return Made([], NOTHING, found.as_py())
        kind = kind_of(found.type)
        assert kind is not None, "numbers, truths, durations and NULL are written out"
        if not found.is_valid:
            return self.pushed(0, 0.0, kind, is_null=True)
        if kind.is_float:
            return self.pushed(0, float(found.as_py()), kind)
        return self.pushed(int(found.cast(pa.int64()).as_py()), 0.0, kind)

    def pushed(self, whole: int, real: float, kind: Kind, *, is_null: bool = False) -> Made:
        """Return what puts a value on the stack."""
        self.known.append((whole, real, is_null))
        return Made([Instruction(layout.CONSTANT, len(self.known) - 1)], kind)

    def both(self, one: Made, other: Made) -> tuple[Made, Made]:
        """Return two operands, a number with a point as the other one needs it."""
        return self._settled(one, other.kind), self._settled(other, one.kind)

    def _settled(self, made: Made, other: Kind) -> Made:
        if made.constant is None:
            return made
        if other.meaning is Meaning.WHOLE and is_long(made.constant):
            return self.pushed(int(made.constant), 0.0, LONG)
        return self.pushed(0, float(made.constant), DOUBLE)


def is_long(value: Decimal) -> bool:
    """Whether it is a whole number of 64 bits; floats tell as much of others."""
    return value == int(value) and LONG_MIN < value < LONG_MAX


def is_written(node: exp.Expr) -> bool:
    """Whether a constant is made of numbers, truths and durations that are written out.

    Others are computed where rows are: texts and times may mean something else there.
    """
    if isinstance(node, exp.Literal):
        return not node.is_string
    kinds: Any = (*_WRITTEN, *COMPARED, *COMPUTED)
    return isinstance(node, kinds) and all(map(is_written, node.iter_expressions()))


def as_float(made: Made) -> Made:
    """Return an operand as a float."""
    if made.kind.is_float:
        return made
    return Made([*made.code, Instruction(layout.TO_FLOAT)], DOUBLE)


def check_number(node: exp.Expr, kind: Kind) -> None:
    """Raise `SqlError` unless it is computed with between rows."""
    if not kind.is_number:
        raise refused(node, f"rows are computed with by numbers, and this is {kind.describe()}")
    if kind.is_float and kind.bits < 64:
        raise refused(node, "rows are computed with by DOUBLE, and this is FLOAT: say CAST")
