"""Functions whose expression in Spark depends on the types of their arguments.

A statement is parsed before the types of columns are known: such a call is a `TypedCall` until
`gpu_windows.sql.syntax.value_types` knows them.
"""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp


class TypedCall(exp.Expression, exp.Func):
    """A call of a function of Flink: ``this`` is its name, ``expressions`` its arguments."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expressions": False}
    _sql_names: ClassVar[list[str]] = []


def typed_call(name: str, *arguments: exp.Expr) -> TypedCall:
    """Return a call that is rewritten when types are known."""
    return TypedCall(this=name, expressions=[*arguments])
