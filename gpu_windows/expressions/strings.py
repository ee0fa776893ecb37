"""String functions: UPPER and LOWER, LENGTH, concatenation, LIKE."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types
from sqlglot import exp

from gpu_windows.expressions.arrays import find_missing, map_arrays, map_distinct
from gpu_windows.expressions.functions.lists import compact_lists, list_owners, make_lists
from gpu_windows.expressions.sql_text import sql_error
from gpu_windows.expressions.values import Value, call

#: A backslash that Spark does not accept in a pattern of LIKE.
_ODD_ESCAPE = re.compile(r"(?<!\\)(\\\\)*\\([^%_\\]|$)", re.DOTALL)


def change_case(node: exp.Upper | exp.Lower, of: Value) -> Value:
    """Return strings in upper or lower case, by Unicode: 'straße' becomes 'STRASSE'.

    Raises
    ------
    SqlError
        If values are not strings, or in a condition of a join, where Python cannot be called.
    """
    of = _as_string(node, of)
    if of.expression is not None:
        rule = "conditions of joins over Arrow tables have no UPPER and LOWER: add a column before"
        raise sql_error(node, rule)
    is_upper = isinstance(node, exp.Upper)
    plain, of_unicode = (pc.ascii_upper, str.upper) if is_upper else (pc.ascii_lower, str.lower)

    def change(texts: pa.Array) -> pa.Array:
        if pc.all(pc.string_is_ascii(texts)).as_py() is not False:
            return plain(texts)
        # Arrow maps some letters differently; Python follows Unicode, as Java does
        return map_distinct(texts, of_unicode, texts.type)

    return Value(map_arrays(change, of.rows))


def join_list(node: exp.Expr, arguments: Sequence[Value]) -> Value:
    """Return the strings of lists connected by a literal separator.

    Nulls in lists are left out, or are the literal that is the third argument.

    Raises
    ------
    SqlError
        If values are not lists of strings, or the separator is not a literal.
    """
    of, *literals = arguments
    is_list = types.is_list(of.dtype) and types.is_string(of.dtype.value_type)
    given = [each.literal for each in literals]
    if not is_list or None in given or not 0 < len(given) < 3 or of.expression is not None:
        rule = "over Arrow tables this takes a list of strings, and a literal between them"
        raise sql_error(node, rule, str(of.dtype))
    separator, *fillers = given

    def join(lists: pa.ListArray) -> pa.Array:
        for filler in fillers:
            elements = pc.fill_null(pc.list_flatten(lists), filler)
            lists = make_lists(elements, list_owners(lists), find_missing(lists))
        return pc.binary_join(compact_lists(lists), separator)

    return Value(map_arrays(join, of.rows))


def length(node: exp.Func, of: Value) -> Value:
    """Return the number of characters."""
    of = _as_string(node, of)
    return call(pc.utf8_length, of)


def _as_string(node: exp.Expr, of: Value) -> Value:
    if types.is_null(of.dtype):
        return of.cast(pa.string())
    if not types.is_string(of.dtype):
        rule = "over Arrow tables this takes strings: cast other types before"
        raise sql_error(node, rule, str(of.dtype))
    return of


def concat(node: exp.Expr, each: list[Value]) -> Value:
    """Return strings concatenated; null where one of them is null."""
    each = [_as_string(node, one) for one in each]
    return call(pc.binary_join_element_wise, *each, "")


def like(node: exp.Like, of: Value) -> Value:
    """Return whether strings match a literal pattern."""
    pattern = node.expression
    if not (isinstance(pattern, exp.Literal) and pattern.is_string):
        raise sql_error(node, "LIKE takes a literal pattern")
    if _ODD_ESCAPE.search(pattern.this):
        raise sql_error(node, "a backslash in a pattern must precede %, _ or a backslash")
    of = _as_string(node, of)
    if "\\" in pattern.this:  # Arrow ignores escapes in patterns of the form 'text%' or '%text'
        return call(pc.match_substring_regex, of, pattern=_like_to_regex(pattern.this))
    return call(pc.match_like, of, pattern=pattern.this)


def _like_to_regex(pattern: str) -> str:
    """Convert a pattern of LIKE, with backslash escapes, to a regular expression."""
    parts = {"%": ".*", "_": "."}
    found = (
        re.escape(part[1]) if part[0] == "\\" else parts.get(part, re.escape(part))
        for part in re.findall(r"\\.|.", pattern, re.DOTALL)
    )
    return f"(?s)\\A{''.join(found)}\\z"
