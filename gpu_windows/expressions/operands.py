"""Operands of expressions: constants, columns, and parts that must be numbers or booleans."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types
from sqlglot import exp

from gpu_windows.expressions.column_names import column_names
from gpu_windows.expressions.fields import field_of
from gpu_windows.expressions.sql_text import sql_error
from gpu_windows.expressions.types import to_spark_type
from gpu_windows.expressions.values import Guard, Value, call


@dataclass(frozen=True)
class Operands(ABC):
    """Evaluates the operands of expressions over the rows of a table.

    Parameters
    ----------
    table : pyarrow.Table
    builds : bool
        Whether to build Arrow expressions, too.
    """

    table: pa.Table
    builds: bool = False

    @abstractmethod
    def evaluate(self, node: exp.Expr, guard: Guard) -> Value:
        """Return the values of an expression; for rows outside of the guard they are undefined."""

    def _constant(self, value: pa.Scalar) -> Value:
        # over no rows a constant has no value either, so that nothing can fail there
        rows = value if len(self.table) else pa.array([], value.type)
        expression = pc.scalar(value) if self.builds else None
        return Value(rows, expression, int(self.builds), value)

    def _rounded_operand(self, node: exp.Expr, guard: Guard) -> Value:
        """Return an operand; of a column, times are rounded down to microseconds."""
        of = node.unnest()
        if not isinstance(of, exp.Column):
            return self.evaluate(node, guard)
        return self._column_in_spark(of, rounds=True)

    def _column_in_spark(self, node: exp.Column, *, rounds: bool = False) -> Value:
        """Return a column, or a field of one, cast to the type that Spark has for it."""
        owner, *fields = (each for each in node.parts if isinstance(each, exp.Identifier))
        name = column_names(self.table.column_names).resolve(owner)
        value = Value(self.table.column(name), pc.field(name) if self.builds else None, 1)
        last = name
        for each in fields:
            value, last = field_of(value, last, each, node)
        if not fields:
            return to_spark_type(value, name, rounds=rounds)
        return to_spark_type(value, last, of=name, rounds=rounds)

    def _second_operand(self, first: Value, node: exp.Expr, guard: Guard) -> Value:
        """Return the second operand, which is not evaluated where the first is null."""
        if isinstance(node, exp.Column | exp.Literal):
            return self.evaluate(node, guard)
        return self.evaluate(node, guard.where(call(pc.is_valid, first)))

    def _number(self, node: exp.Expr, guard: Guard) -> Value:
        """Return an operand; NULL alone becomes a DOUBLE."""
        of = self.evaluate(node, guard)
        return of.cast(pa.float64()) if types.is_null(of.dtype) else of

    def _boolean_value(self, node: exp.Expr, guard: Guard) -> Value:
        found = self.evaluate(node, guard)
        if types.is_null(found.dtype):
            return found.cast(pa.bool_())
        if not types.is_boolean(found.dtype):
            raise sql_error(node, f"this must be true or false, got {found.dtype}")
        return found
