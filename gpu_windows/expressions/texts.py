"""Texts: upper and lower case, patterns, texts put together."""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types
from sqlglot import exp

from gpu_windows.expressions.places import refused
from gpu_windows.expressions.values import Rows, Value, call

#: A backslash that Spark does not take in a pattern.
_ODD_ESCAPE = re.compile(r"(?<!\\)(\\\\)*\\([^%_\\]|$)", re.DOTALL)


def in_case(node: exp.Func, of: Value, *, upper: bool) -> Value:
    """Return texts in upper or lower case: 'straße' is 'STRASSE', of one letter more.

    Raises
    ------
    SqlError
        If they are none, or in a condition of a join, where Arrow does without Python.
    """
    of = _as_text(node, of)
    if of.expression is not None:
        rule = "a condition of a join has no UPPER and LOWER over Arrow tables: add a column before"
        raise refused(node, rule)
    return Value(_in_case(of.rows, pc.ascii_upper if upper else pc.ascii_lower, upper=upper))


def _in_case(rows: Rows, plain: Callable[[Rows], Rows], *, upper: bool) -> Rows:
    if isinstance(rows, pa.Scalar):
        return _in_case(pa.array([rows.as_py()], rows.type), plain, upper=upper)[0]
    if pc.all(pc.string_is_ascii(rows)).as_py() is not False:
        return plain(rows)
    # Arrow has other letters for some; Python has those of Unicode, as Java
    coded = pc.dictionary_encode(rows)
    whole = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
    texts = [t.upper() if upper else t.lower() for t in whole.dictionary.to_pylist()]
    return pa.array(texts, rows.type).take(whole.indices)


def length(node: exp.Func, of: Value) -> Value:
    """Return how many characters there are."""
    of = _as_text(node, of)
    return call(pc.utf8_length, of)


def _as_text(node: exp.Expr, of: Value) -> Value:
    if types.is_null(of.dtype):
        return of.cast(pa.string())
    if not types.is_string(of.dtype):
        rule = "over Arrow tables this is for texts: cast what is none before"
        raise refused(node, rule, str(of.dtype))
    return of


def joined(node: exp.Expr, each: list[Value]) -> Value:
    """Return texts put together; null where one of them is."""
    each = [_as_text(node, one) for one in each]
    return call(pc.binary_join_element_wise, *each, "")


def like(node: exp.Like, of: Value) -> Value:
    """Return whether texts are as a pattern says that is written out."""
    pattern = node.expression
    if not (isinstance(pattern, exp.Literal) and pattern.is_string):
        raise refused(node, "LIKE takes a pattern that is written out")
    if _ODD_ESCAPE.search(pattern.this):
        raise refused(node, "a backslash in a pattern stands before %, _ or a backslash")
    of = _as_text(node, of)
    if "\\" in pattern.this:  # Arrow takes a text before or behind % as it is, escapes too
        return call(pc.match_substring_regex, of, pattern=_regular(pattern.this))
    return call(pc.match_like, of, pattern=pattern.this)


def _regular(pattern: str) -> str:
    """Return a pattern of LIKE, in which a backslash is the escape, as a regular expression."""
    parts = {"%": ".*", "_": "."}
    found = (
        re.escape(part[1]) if part[0] == "\\" else parts.get(part, re.escape(part))
        for part in re.findall(r"\\.|.", pattern, re.DOTALL)
    )
    return f"(?s)\\A{''.join(found)}\\z"
