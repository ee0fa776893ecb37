"""Fields of structs."""

from __future__ import annotations

import pyarrow.compute as pc
from pyarrow import types
from sqlglot import exp

from gpu_windows.expressions.column_names import column_names
from gpu_windows.expressions.sql_text import sql_error
from gpu_windows.expressions.values import Value, call


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
    found = column_names(each.name for each in of.dtype).resolve(field)
    return call(pc.struct_field, of, indices=[of.dtype.get_field_index(found)]), found
