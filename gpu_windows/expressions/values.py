"""Values of expressions: arrays, and for conditions of joins the expressions of Arrow's of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

#: Values of rows; one value for all of them is a scalar.
Rows: TypeAlias = pa.Array | pa.ChunkedArray | pa.Scalar


@dataclass(frozen=True)
class Value:
    """The values that an expression has.

    Parameters
    ----------
    rows : pyarrow.Array, pyarrow.ChunkedArray or pyarrow.Scalar
        Its values.
    expression : pyarrow.compute.Expression, optional
        The same as an expression of Arrow's, where one is asked for.
    parts : int
        How many calls that expression is of, those that it repeats too.
    written : pyarrow.Scalar, optional
        The value, where it is written out in the text.
    """

    rows: Rows
    expression: pc.Expression | None = None
    parts: int = 0
    written: pa.Scalar | None = None

    @property
    def dtype(self) -> pa.DataType:
        """Type of the values."""
        return self.rows.type

    def replaced(self, written: pa.Scalar) -> Value:
        """Return another value that is written out, for the same rows."""
        rows = written if isinstance(self.rows, pa.Scalar) else pa.array([], written.type)
        expression = None if self.expression is None else pc.scalar(written)
        return Value(rows, expression, self.parts, written)

    def cast(self, dtype: pa.DataType, *, safe: bool = True) -> Value:
        """Return the values as Arrow casts them, or these if they are of that type."""
        if dtype == self.dtype:
            return self
        return call(_cast, self, dtype=dtype, safe=safe)


def _cast(of: Any, *, dtype: pa.DataType, safe: bool) -> Any:
    return of.cast(dtype, safe=safe)


def call(function: Callable[..., Any], *arguments: Any, **options: Any) -> Value:
    """Return what a function of `pyarrow.compute` gives for values, and for scalars besides.

    Raises
    ------
    pyarrow.ArrowException
        If there is no such function for the types, or no value for a row.
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


def null_of(dtype: pa.DataType) -> pa.Scalar:
    """Return no value, of a type."""
    return pa.scalar(None, dtype)


@dataclass(frozen=True)
class Guard:
    """The rows for which Spark evaluates an expression: those of a branch of CASE, for example.

    Parameters
    ----------
    holds : Value, optional
        True for these rows, and nowhere null; None for all.
    """

    holds: Value | None = None

    def where(self, condition: Value) -> Guard:
        """Return those of them for which a condition is true, and neither false nor null."""
        true = call(pc.coalesce, condition, False)
        return Guard(true if self.holds is None else call(pc.and_kleene, self.holds, true))

    def unless(self, condition: Value) -> Guard:
        """Return those of them for which a condition is not true."""
        other = call(pc.invert, call(pc.coalesce, condition, False))
        return Guard(other if self.holds is None else call(pc.and_kleene, self.holds, other))

    def masked(self, value: Value) -> Value:
        """Return values that are null for other rows, so that these cannot fail."""
        if self.holds is None or types.is_null(value.dtype):
            return value
        return call(pc.if_else, self.holds, value, null_of(value.dtype))
