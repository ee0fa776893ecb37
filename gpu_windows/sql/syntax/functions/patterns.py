"""Regular expressions, and patterns of LIKE and SIMILAR TO."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp

from gpu_windows.expressions.sql_text import sql_error
from gpu_windows.sql.syntax.functions.building import (
    Function,
    UnsupportedCallError,
    integer_literal,
    need_some_text,
    need_text,
    number,
    spark_function,
    string,
)
from gpu_windows.sql.syntax.functions.texts import quote_pattern
from gpu_windows.sql.syntax.regex_groups import groups_in_every_match

_LIKE = spark_function("REGEXP_LIKE")


def _group_index(pattern: exp.Expr, group: exp.Expr | None, default: int) -> int:
    """Return the index of a group that every match has."""
    text = need_some_text(pattern, "pattern")
    index = default if group is None else integer_literal(group, 0)
    if index is None:
        raise UnsupportedCallError("takes a literal pattern and group")
    groups = groups_in_every_match(text)
    if index >= len(groups):
        raise UnsupportedCallError(
            f"takes one of the groups of its pattern: 0 to {len(groups) - 1}"
        )
    if not groups[index]:
        rule = "takes a group that every match has: an optional group is NULL in Flink"
        raise UnsupportedCallError(f"{rule}, and an empty string in Spark")
    return index


def _extract_group(of: exp.Expr, pattern: exp.Expr, group: exp.Expr | None = None) -> exp.Expr:
    """Return a group of the first match, by default the whole match; NULL without a match."""
    index = number(_group_index(pattern, group, 0))
    value = spark_function("REGEXP_EXTRACT")(of.copy(), pattern.copy(), index)
    return exp.Case(ifs=[exp.If(this=_LIKE(of, pattern), true=value)])


def _extract_all(of: exp.Expr, pattern: exp.Expr, group: exp.Expr | None = None) -> exp.Expr:
    index = number(_group_index(pattern, group, 1))
    return spark_function("REGEXP_EXTRACT_ALL")(of, pattern, index)


def _replace_matches(of: exp.Expr, pattern: exp.Expr, by: exp.Expr) -> exp.Expr:
    """Replace matches; in Flink, $ and backslash in the replacement are literal."""
    need_some_text(pattern, "pattern")
    text = need_text(by, "replacement")
    plain = string(text.replace("\\", "\\\\").replace("$", "\\$"))
    return spark_function("REGEXP_REPLACE")(of, pattern, plain)


def _of_pattern(name: str) -> Function:
    def build(of: exp.Expr, pattern: exp.Expr) -> exp.Expr:
        need_some_text(pattern, "pattern")
        return spark_function(name)(of, pattern)

    return Function(2, 2, build)


#: Parts of patterns of SIMILAR TO: a class, or one character.
_SIMILAR = re.compile(r"\[[^\]\\]*\]|.", re.DOTALL)
_SIMILAR_OPERATORS = set("|*+?(){}")


def similar_to(node: exp.SimilarTo) -> exp.Expr:
    """Return ``SIMILAR TO`` as a regular expression that matches the whole string."""
    pattern = node.expression
    if isinstance(node.parent, exp.Escape):
        raise UnsupportedCallError("takes no ESCAPE")
    text = need_text(pattern, "pattern")
    if "\\" in text or "[:" in text:
        raise UnsupportedCallError("takes a pattern without backslashes and named classes")
    parts = {"%": "(?s:.*)", "_": "."}
    found = (
        each
        if len(each) > 1 or each in _SIMILAR_OPERATORS
        else parts.get(each) or quote_pattern(each)
        for each in _SIMILAR.findall(text)
    )
    return _LIKE(node.this, string(f"\\A(?:{''.join(found)})\\z"))


def like(node: exp.Like) -> exp.Expr:
    """Return LIKE with backslashes doubled: Flink has no escape character but that of ESCAPE."""
    if isinstance(node.parent, exp.Escape):
        return node
    pattern = node.expression
    if isinstance(pattern, exp.Literal):
        return _with_pattern(node, string(str(pattern.this).replace("\\", "\\\\")))
    doubled = spark_function("REPLACE")(pattern.copy(), string("\\"), string("\\\\"))
    return _with_pattern(node, doubled)


def escape(node: exp.Escape) -> exp.Expr:
    """Return ``LIKE pattern ESCAPE character`` as LIKE with backslash escapes."""
    like, escape = node.this, node.expression
    if not isinstance(like, exp.Like) or not isinstance(like.expression, exp.Literal):
        raise sql_error(node, "ESCAPE needs LIKE and a literal pattern")
    if not isinstance(escape, exp.Literal) or len(escape.name) != 1:
        raise sql_error(node, "ESCAPE takes one character", escape.name)
    return _with_pattern(like, string(_escape_pattern(node, like.expression.name, escape.name)))


def _escape_pattern(node: exp.Expr, pattern: str, escape: str) -> str:
    def convert(found: re.Match[str]) -> str:
        if found[0][0] != escape:
            return "\\\\"  # a backslash, which is an ordinary character
        if found[1] not in ("%", "_", escape):
            rule = f"in this pattern {escape}, the ESCAPE, must precede %, _ or itself"
            raise sql_error(node, rule, pattern)
        return found[1] if found[1] == escape != "\\" else f"\\{found[1]}"

    return re.sub(rf"{re.escape(escape)}(.)?|\\", convert, pattern, flags=re.DOTALL)


def _with_pattern(node: exp.Like, pattern: exp.Expr) -> exp.Expr:
    return exp.Like(**{**node.args, "expression": pattern})


#: The functions by name.
PATTERNS: Mapping[str, Function] = {
    "REGEXP": _of_pattern("REGEXP_LIKE"),
    "REGEXP_EXTRACT": Function(2, 3, _extract_group),
    "REGEXP_EXTRACT_ALL": Function(2, 3, _extract_all),
    "REGEXP_REPLACE": Function(3, 3, _replace_matches),
    "REGEXP_COUNT": _of_pattern("REGEXP_COUNT"),
    "REGEXP_INSTR": _of_pattern("REGEXP_INSTR"),
    "REGEXP_SUBSTR": Function(2, 2, _extract_group),
}
