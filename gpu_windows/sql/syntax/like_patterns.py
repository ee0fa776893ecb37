"""Patterns of LIKE, which have no escape character in Flink but that of ESCAPE."""

from __future__ import annotations

from sqlglot import exp

from gpu_windows.expressions.sql_text import sql_error


def like(node: exp.Like) -> exp.Expr:
    """Return LIKE with backslashes doubled: Flink has no default escape character."""
    if isinstance(node.parent, exp.Escape):
        return node
    pattern = node.expression
    if isinstance(pattern, exp.Literal):
        return _with_pattern(node, str(pattern.this).replace("\\", "\\\\"))
    backslash, two = exp.Literal.string("\\"), exp.Literal.string("\\\\")
    plain = exp.Anonymous(this="REPLACE", expressions=[pattern.copy(), backslash, two])
    return exp.Like(**{**node.args, "expression": plain})


def escape(node: exp.Escape) -> exp.Expr:
    """Return ``LIKE pattern ESCAPE character`` as LIKE with backslash escapes."""
    like, escape = node.this, node.expression
    if not isinstance(like, exp.Like) or not isinstance(like.expression, exp.Literal):
        raise sql_error(node, "ESCAPE needs LIKE and a literal pattern")
    if not isinstance(escape, exp.Literal) or len(escape.name) != 1:
        raise sql_error(node, "ESCAPE takes one character", escape.name)
    return _with_pattern(like, _escape_pattern(node, like.expression.name, escape.name))


def _escape_pattern(node: exp.Expr, pattern: str, escape: str) -> str:
    found, rest = "", pattern
    while rest:
        one, rest = rest[0], rest[1:]
        if one != escape:
            found += "\\\\" if one == "\\" else one
            continue
        if not rest or rest[0] not in ("%", "_", escape):
            rule = f"in this pattern {escape}, the ESCAPE, must precede %, _ or itself"
            raise sql_error(node, rule, pattern)
        found += "\\\\" if rest[0] == "\\" else rest[0] if rest[0] == escape else f"\\{rest[0]}"
        rest = rest[1:]
    return found


def _with_pattern(node: exp.Like, pattern: str) -> exp.Expr:
    return exp.Like(**{**node.args, "expression": exp.Literal.string(pattern)})
