"""Functions of JSON texts."""

from __future__ import annotations

import re

from sqlglot import exp

from gpu_windows.expressions.json_calls import JsonCall
from gpu_windows.sql.syntax.functions.building import (
    UnsupportedCallError,
    need_text,
    null_if_any,
    string,
    template,
)
from gpu_windows.sql.syntax.type_names import BOOLEAN, TEXT, VALUE_TYPE

#: Paths of names and indexes, whose mode makes no difference to the results.
_PATH = re.compile(r"(?:lax |strict )?(\$(?:\.[A-Za-z_]\w*|\[\d+\]|\['[^'\\\]]+'\])*)", re.ASCII)
_KIND = "SCHEMA_OF_VARIANT(TRY_VARIANT_GET(TRY_PARSE_JSON(a), b))"
_NESTED = f"REGEXP_LIKE({_KIND}, '\\\\A(OBJECT|ARRAY)')"
_NO_TEXT = f"REGEXP_LIKE({_KIND}, '\\\\A(OBJECT|ARRAY|VOID)')"
_VALUE = template(f"CASE WHEN {_NO_TEXT} THEN NULL ELSE GET_JSON_OBJECT(a, b) END")
_QUERY = template(f"CASE WHEN {_NESTED} THEN GET_JSON_OBJECT(a, b) END")
_EXISTS = null_if_any(template(f"COALESCE({_KIND} <> 'VOID', FALSE)"))
#: Options that say what is done without them.
_DEFAULTS = {
    "JSON_VALUE": ("NULL ON EMPTY", "NULL ON ERROR"),
    "JSON_QUERY": ("NULL ON EMPTY", "NULL ON ERROR", "WITHOUT WRAPPER", "WITHOUT ARRAY WRAPPER"),
    "JSON_EXISTS": ("FALSE ON ERROR",),
}
_MAKERS = {"JSON_VALUE": _VALUE, "JSON_QUERY": _QUERY, "JSON_EXISTS": _EXISTS}
_RETURNED = (exp.DType.TEXT, exp.DType.VARCHAR, exp.DType.INT, exp.DType.DOUBLE, exp.DType.BOOLEAN)


def json_call(node: JsonCall) -> exp.Expr:
    """Return ``JSON_VALUE(text, '$.a.b[0]')``, and the like."""
    name = node.name
    if len(node.expressions) != 2:
        raise UnsupportedCallError("takes a text and a path")
    of, path = node.expressions
    match = _PATH.fullmatch(need_text(path, "path"))
    if match is None:
        raise UnsupportedCallError("takes a literal path of names and indexes, such as $.a.b[0]")
    for option in node.args.get("options") or ():
        if option not in _DEFAULTS[name]:
            raise UnsupportedCallError(f"takes no {option}: use COALESCE for a default")
    made = _MAKERS[name](of, string(match[1]))
    made.meta[VALUE_TYPE] = BOOLEAN if name == "JSON_EXISTS" else TEXT
    return _with_type(made, node.args.get("returning"))


def _with_type(made: exp.Expr, returning: exp.DataType | None) -> exp.Expr:
    if returning is None or returning.this in _RETURNED[:2]:
        return made
    if returning.this not in _RETURNED:
        raise UnsupportedCallError("RETURNING takes STRING, INT, DOUBLE or BOOLEAN")
    return exp.cast(made, returning)
