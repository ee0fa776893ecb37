"""Expressions over Arrow tables: those of Spark's SQL that Arrow computes alike.

Nulls, NaN (greater than all numbers, and equal to itself), the types of results, which parts are
asked for a row and what is an error are Spark's, in ANSI mode and in a session in UTC.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyarrow import types
from sqlglot import exp

from gpu_windows.errors import ColumnTypeError, SqlError
from gpu_windows.expressions.columns import names_of
from gpu_windows.expressions.evaluated import Evaluator
from gpu_windows.expressions.places import parsed_expression, refused
from gpu_windows.expressions.values import Value


def compute(text: str | exp.Expr, table: pa.Table) -> pa.ChunkedArray:
    """Return the values of an expression for the rows of a table.

    Raises
    ------
    SqlError
        If it cannot be read, or is not among those that are computed here, or names a column that
        is not there.
    ExpressionError
        If it has no value for a row.
    """
    node = _node(text)
    if isinstance(node, exp.Column) and not node.table:
        return table.column(names_of(table.column_names).of(node))
    return _column(_values(node, table), len(table))


def holds(text: str, table: pa.Table) -> pa.ChunkedArray:
    """Return for which rows of a table a condition is true.

    Raises
    ------
    SqlError, ExpressionError
        See `compute`.
    ColumnTypeError
        If it is neither true nor false.
    """
    found = _values(_node(text), table)
    if not (types.is_boolean(found.dtype) or types.is_null(found.dtype)):
        rule = f"a condition is true or false: {text}"
        raise ColumnTypeError(rule, value=str(found.dtype))
    return _column(found.cast(pa.bool_()), len(table))


@dataclass(frozen=True)
class ArrowExpressions:
    """Makes expressions of Arrow over the columns of a schema, for conditions of joins.

    Parameters
    ----------
    schema : pyarrow.Schema
    """

    schema: pa.Schema

    def typed(self, text: str | exp.Expr) -> Value:
        """Return an expression and its type.

        Raises
        ------
        SqlError
            See `compute`.
        """
        return _of(Evaluator(self.schema.empty_table(), builds=True), _node(text))


def _node(text: str | exp.Expr) -> exp.Expr:
    return text if isinstance(text, exp.Expr) else parsed_expression(text)


def _values(node: exp.Expr, table: pa.Table) -> Value:
    """Try it on no rows first: what fails there is of the text, and not of a row."""
    try:
        found = _of(Evaluator(table.schema.empty_table()), node)
    except SqlError as error:
        if error.line is not None:
            raise
        # nothing in it knows its place, as in `-true`: it is the whole text
        raise SqlError(error.rule, value=error.value, line=1, position=1) from None
    return _of(Evaluator(table), node) if len(table) else found


def _of(evaluator: Evaluator, node: exp.Expr) -> Value:
    try:
        return evaluator.of(node)
    except RecursionError:
        raise refused(node, "an expression has fewer parts within each other") from None


def _column(of: Value, length: int) -> pa.ChunkedArray:
    rows = of.rows
    if isinstance(rows, pa.Scalar):
        rows = pa.repeat(rows, length)
    return rows if isinstance(rows, pa.ChunkedArray) else pa.chunked_array([rows])
