"""The arguments of nodes that are evaluated; others are refused, not ignored."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from gpu_windows.expressions.sql_text import sql_error

#: By class of node.
_READ_ARGUMENTS: Mapping[type[exp.Expr], frozenset[str]] = {
    exp.Column: frozenset(("this", "table", "db", "catalog")),
    exp.Literal: frozenset(("this", "is_string")),
    exp.Interval: frozenset(("this", "unit")),
    exp.Between: frozenset(("this", "low", "high", "negate")),
    exp.In: frozenset(("this", "expressions", "negate")),
    exp.Case: frozenset(("this", "ifs", "default")),
    exp.If: frozenset(("this", "true", "false")),
    exp.Coalesce: frozenset(("this", "expressions")),
    exp.Cast: frozenset(("this", "to")),
    exp.Concat: frozenset(("expressions", "safe")),
    exp.Anonymous: frozenset(("this", "expressions")),
    exp.TryCast: frozenset(("this", "to", "safe")),
    exp.MakeInterval: frozenset(exp.MakeInterval.arg_types),
    exp.Substring: frozenset(("this", "start", "length")),
    exp.Chr: frozenset(("expressions",)),
    exp.Trim: frozenset(("this", "expression", "position")),
}
_BINARY = frozenset(("this", "expression", "negate", "typed", "safe"))


def check_arguments(node: exp.Expr) -> None:
    """Raise `SqlError` if a node has an argument that the evaluator does not read."""
    read = _READ_ARGUMENTS.get(type(node), _BINARY)
    for name, value in node.args.items():
        if name not in read and value not in (None, False, []):
            rule = f"over Arrow tables {type(node).__name__.upper()} does not support {name}"
            raise sql_error(node, rule)
