"""Reads statements: trees that mean on both runners what their texts mean in Flink."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from gpu_windows.expressions.places import parsed, refused

_CODE = re.compile(r"[0-9A-Fa-f]{4}")


def read_statement(text: str) -> exp.Expr:
    """Return the tree of a statement, in which nodes have Flink's meaning.

    Raises
    ------
    SqlError
        With the place of what cannot be read, or has no such meaning here.
    """
    tree = parsed(text)
    for node in reversed([*tree.walk(bfs=True)]):  # what is within others comes first
        rule = _RULES.get(type(node))
        found = node if rule is None else rule(node)
        if found is not node:
            found.meta.update(node.meta)
            node.replace(found)
    return tree


def _unicode(node: exp.UnicodeString) -> exp.Expr:
    """Return a literal of code points as the text that it is."""
    escape = node.args.get("escape") or exp.Literal.string("\\")
    text, rest = "", str(node.this)
    while rest:
        before, mark, rest = rest.partition(escape.name)
        text += before
        if rest.startswith(escape.name):
            text, rest = text + mark, rest[1:]
        elif mark:
            code = _CODE.match(rest)
            if code is None:
                rule = f"in U&'...' four hexadecimal digits stand behind {escape.name}"
                raise refused(node, rule, str(node.this))
            text, rest = text + chr(int(code[0], 16)), rest[4:]
    return exp.Literal.string(text)


def _like(node: exp.Like) -> exp.Expr:
    """Return LIKE with a pattern in which a backslash is one: Flink has no escape by default."""
    if isinstance(node.parent, exp.Escape):
        return node
    pattern = node.expression
    if isinstance(pattern, exp.Literal):
        return _with_pattern(node, str(pattern.this).replace("\\", "\\\\"))
    backslash, two = exp.Literal.string("\\"), exp.Literal.string("\\\\")
    plain = exp.Anonymous(this="REPLACE", expressions=[pattern.copy(), backslash, two])
    return exp.Like(**{**node.args, "expression": plain})


def _escape(node: exp.Escape) -> exp.Expr:
    """Return ``LIKE pattern ESCAPE character`` as LIKE with backslashes."""
    like, escape = node.this, node.expression
    if not isinstance(like, exp.Like) or not isinstance(like.expression, exp.Literal):
        raise refused(node, "ESCAPE goes with LIKE and a pattern that is written out")
    if not isinstance(escape, exp.Literal) or len(escape.name) != 1:
        raise refused(node, "ESCAPE is one character", escape.name)
    return _with_pattern(like, _escaped(node, like.expression.name, escape.name))


def _escaped(node: exp.Expr, pattern: str, escape: str) -> str:
    found, rest = "", pattern
    while rest:
        one, rest = rest[0], rest[1:]
        if one != escape:
            found += "\\\\" if one == "\\" else one
            continue
        if not rest or rest[0] not in ("%", "_", escape):
            rule = f"in a pattern {escape} stands before %, _ or itself, as ESCAPE says"
            raise refused(node, rule, pattern)
        found += "\\\\" if rest[0] == "\\" else rest[0] if rest[0] == escape else f"\\{rest[0]}"
        rest = rest[1:]
    return found


def _with_pattern(node: exp.Like, pattern: str) -> exp.Expr:
    return exp.Like(**{**node.args, "expression": exp.Literal.string(pattern)})


_RULES: Mapping[type[exp.Expr], Callable[[Any], exp.Expr]] = {
    exp.UnicodeString: _unicode,
    exp.Like: _like,
    exp.Escape: _escape,
}
