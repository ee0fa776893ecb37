"""Texts that are written out, as Spark reads them whatever its settings are."""

from __future__ import annotations

import re

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.generators.spark import SparkGenerator

#: What Spark's parser takes for more than itself: ``spark.sql.parser.escapedStringLiterals`` says
#: what a backslash is and whether a quote may be written twice, and ``${name}`` is a variable.
_SPECIAL = re.compile(r"([\\'$])")
_ASCII = 128


class SparkTextGenerator(SparkGenerator):
    """Writes expressions that mean the same under all settings of Spark's parser."""

    def literal_sql(self, expression: exp.Literal) -> str:
        """Return a number, or a text without special characters: these are ``CHAR(code)``."""
        text = str(expression.this)
        if not expression.is_string:
            return super().literal_sql(expression)
        if _SPECIAL.search(text) is None:
            return f"'{text}'"  # line breaks and all: Spark's escapes for them are a setting
        parts = [part for part in _SPECIAL.split(text) if part]
        shown = (f"CHAR({ord(p)})" if _SPECIAL.fullmatch(p) else f"'{p}'" for p in parts)
        return f"({' || '.join(shown)})" if len(parts) > 1 else "".join(shown)


class SparkText(Spark):
    """Spark's SQL, written by `SparkTextGenerator`."""

    Generator = SparkTextGenerator


def with_folded_texts(tree: exp.Expr) -> exp.Expr:
    """Return an expression in which texts that are put together of literals are one literal.

    And lengths that are made of seconds alone are INTERVALs.
    """

    def fold(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.MakeInterval):
            return _interval_of(node)
        if not isinstance(node, exp.Paren | exp.DPipe | exp.Chr):
            return node
        text = _text_of(node)
        return node if text is None else exp.Literal.string(text)

    return tree.transform(fold)


def _text_of(node: exp.Expr) -> str | None:
    """Return the text that an expression of literals is; None if it is of anything else."""
    if isinstance(node, exp.Literal):
        return str(node.this) if node.is_string else None
    if isinstance(node, exp.Paren):
        return _text_of(node.this)
    if isinstance(node, exp.DPipe):
        one, other = _text_of(node.this), _text_of(node.expression)
        return None if one is None or other is None else one + other
    if isinstance(node, exp.Chr) and len(node.expressions) == 1:
        code = node.expressions[0]
        is_ascii = isinstance(code, exp.Literal) and code.is_int and 0 < int(code.name) < _ASCII
        return chr(int(code.name)) if is_ascii else None
    return None


def _interval_of(node: exp.MakeInterval) -> exp.Expr:
    seconds = node.args.get("second")
    others = (each for name, each in node.args.items() if name != "second")
    if seconds is None or any(each.name != "0" for each in others):
        return node
    return exp.Interval(this=exp.Literal.string(seconds.sql()), unit=exp.Var(this="SECOND"))
