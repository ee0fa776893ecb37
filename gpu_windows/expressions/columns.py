"""Columns of a table and their fields, named in any case as in Spark, and constants, as values."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types
from sqlglot import exp

from gpu_windows.errors import did_you_mean
from gpu_windows.expressions.sql_text import sql_error
from gpu_windows.expressions.types import to_spark_type
from gpu_windows.expressions.values import Value, call


@dataclass(frozen=True)
class ColumnNames:
    """Names of the columns of a table.

    Parameters
    ----------
    names : tuple of str
    """

    names: tuple[str, ...]

    def resolve(self, column: exp.Expr) -> str:
        """Return the exact name of the column that a text names in any case.

        Raises
        ------
        SqlError
            If no column matches, or several do.
        """
        wanted = column.name
        if wanted in self.names:
            return wanted
        found = [name for name in self.names if name.lower() == wanted.lower()]
        if len(found) == 1:
            return found[0]
        if found:
            raise sql_error(column, f"the name is ambiguous: {' or '.join(found)}", wanted)
        near = did_you_mean(wanted, self.names)
        rule = f"there is no such column; there are {', '.join(self.names)}{near}"
        raise sql_error(column, rule, wanted)

    def has(self, column: exp.Column) -> bool:
        """Whether a column matches, in any case."""
        return any(name.lower() == column.name.lower() for name in self.names)


@dataclass(frozen=True)
class Columns:
    """Columns of a table, and constants for its rows, as values.

    Parameters
    ----------
    table : pyarrow.Table
    builds : bool
        Whether to build Arrow expressions, too.
    """

    table: pa.Table
    builds: bool = False

    def constant(self, value: pa.Scalar) -> Value:
        """Return a constant; over no rows it has no value either, so that nothing can fail."""
        rows = value if len(self.table) else pa.array([], value.type)
        expression = pc.scalar(value) if self.builds else None
        return Value(rows, expression, int(self.builds), value)

    def column(self, node: exp.Column, *, rounds: bool = False) -> Value:
        """Return a column, or a field of one, cast to the type that Spark has for it."""
        owner, *fields = (each for each in node.parts if isinstance(each, exp.Identifier))
        name = last = ColumnNames(tuple(self.table.column_names)).resolve(owner)
        value = Value(self.table.column(name), pc.field(name) if self.builds else None, 1)
        for each in fields:
            value, last = field_of(value, last, each, node)
        return to_spark_type(value, last, of=name if fields else None, rounds=rounds)


def field_of(of: Value, name: str, field: exp.Expr, node: exp.Expr) -> tuple[Value, str]:
    """Return the values of a field, and its name as the struct has it.

    Parameters
    ----------
    of : Value
        Structs.
    name : str
        Their name, for the message.
    field : sqlglot.exp.Identifier
        In any case.
    node : sqlglot.exp.Expr
        For the position of errors.

    Raises
    ------
    SqlError
        If values are not structs, or have no such field.
    """
    if not types.is_struct(of.dtype) or not isinstance(field, exp.Identifier):
        raise sql_error(node, f"{name} is not a struct and has no fields", str(of.dtype))
    found = ColumnNames(tuple(each.name for each in of.dtype)).resolve(field)
    return call(pc.struct_field, of, indices=[of.dtype.get_field_index(found)]), found
