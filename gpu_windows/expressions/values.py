"""Values of expressions: arrays, and for conditions of joins the Arrow expressions of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

#: The values of rows; a scalar is one value for all rows.
Rows: TypeAlias = pa.Array | pa.ChunkedArray | pa.Scalar


@dataclass(frozen=True)
class Value:
    """The values of an expression.

    Parameters
    ----------
    rows : pyarrow.Array, pyarrow.ChunkedArray or pyarrow.Scalar
    expression : pyarrow.compute.Expression, optional
        The same as an Arrow expression, if one is built.
    parts : int
        Number of calls in that expression, counting repeated ones.
    literal : pyarrow.Scalar, optional
        The value, if it is a literal in the text.
    """

    rows: Rows
    expression: pc.Expression | None = None
    parts: int = 0
    literal: pa.Scalar | None = None

    @property
    def dtype(self) -> pa.DataType:
        """Type of the values."""
        return self.rows.type

    def with_literal(self, literal: pa.Scalar) -> Value:
        """Return the value of another literal, for the same rows."""
        rows = literal if isinstance(self.rows, pa.Scalar) else pa.array([], literal.type)
        expression = None if self.expression is None else pc.scalar(literal)
        return Value(rows, expression, self.parts, literal)

    def cast(self, dtype: pa.DataType, *, safe: bool = True) -> Value:
        """Return the values cast by Arrow; unchanged if they have the type already."""
        if dtype == self.dtype:
            return self
        return call(_cast, self, dtype=dtype, safe=safe)


def _cast(of: Any, *, dtype: pa.DataType, safe: bool) -> Any:
    return of.cast(dtype, safe=safe)


def call(function: Callable[..., Any], *arguments: Any, **options: Any) -> Value:
    """Call a function of `pyarrow.compute` with values and scalars, and build its expression.

    Raises
    ------
    pyarrow.ArrowException
        If the function does not take the types, or a row has no value.
    """
    rows = function(*(_rows_of(each) for each in arguments), **options)
    given = [each for each in arguments if isinstance(each, Value)]
    if any(each.expression is None for each in given):
        return Value(rows)
    expression = function(*(_expression_of(each) for each in arguments), **options)
    return Value(rows, expression, 1 + sum(each.parts for each in given))


def _rows_of(argument: Any) -> Any:
    if isinstance(argument, Value):
        return argument.rows
    return argument if isinstance(argument, pa.Scalar) else pa.scalar(argument)


def _expression_of(argument: Any) -> Any:
    return argument.expression if isinstance(argument, Value) else pc.scalar(argument)


def null(dtype: pa.DataType) -> pa.Scalar:
    """Return the null of a type."""
    return pa.scalar(None, dtype)


@dataclass(frozen=True)
class Guard:
    """The rows for which Spark evaluates an expression, such as those of a branch of CASE.

    Parameters
    ----------
    included : Value, optional
        True for these rows, never null; None means all rows.
    """

    included: Value | None = None

    def where(self, condition: Value) -> Guard:
        """Return the guard of those rows for which a condition is true, not false or null."""
        return self._within(call(pc.coalesce, condition, False))

    def unless(self, condition: Value) -> Guard:
        """Return the guard of those rows for which a condition is false or null."""
        return self._within(call(pc.invert, call(pc.coalesce, condition, False)))

    def _within(self, rows: Value) -> Guard:
        return Guard(rows if self.included is None else call(pc.and_kleene, self.included, rows))

    def mask(self, value: Value) -> Value:
        """Return values set to null for other rows, so that other rows cannot fail."""
        if self.included is None or types.is_null(value.dtype):
            return value
        return call(pc.if_else, self.included, value, null(value.dtype))
