"""Functions of JSON texts.

A path without a mode is strict, as in Flink: where it leads nowhere, there is an error, and a lax
one is empty; so is a value of another kind, such as an object for JSON_VALUE.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlglot import exp

from gpu_windows.expressions.json_calls import JsonCall
from gpu_windows.sql.syntax.functions.building import (
    UnsupportedCallError,
    need_text,
    null_if_any,
    spark_function,
    string,
    template,
    text_literal,
    typed_call,
)
from gpu_windows.sql.syntax.type_names import BOOLEAN, TEXT, with_type

#: Paths of names and indexes.
_PATH = re.compile(r"(lax |strict )?(\$(?:\.[A-Za-z_]\w*|\[\d+\]|\['[^'\\\]]+'\])*)", re.ASCII)
_KIND = "SCHEMA_OF_VARIANT(TRY_VARIANT_GET(TRY_PARSE_JSON(a), b))"
_WHOLE_KIND = "SCHEMA_OF_VARIANT(TRY_VARIANT_GET(TRY_PARSE_JSON(a), '$'))"
_NESTED = f"REGEXP_LIKE({_KIND}, '\\\\A(OBJECT|ARRAY)')"
_NO_TEXT = f"REGEXP_LIKE({_KIND}, '\\\\A(OBJECT|ARRAY|VOID)')"
#: Null where there is no kind, too: GET_JSON_OBJECT reads some texts that are no JSON.
_VALUE = template(f"CASE WHEN NOT {_NO_TEXT} THEN GET_JSON_OBJECT(a, b) END")
_QUERY = template(f"CASE WHEN {_NESTED} THEN GET_JSON_OBJECT(a, b) END")
_WRAP_OTHERS = (
    f"WHEN {_KIND} = 'STRING' THEN TO_JSON(ARRAY(GET_JSON_OBJECT(a, b))) "
    f"WHEN {_KIND} <> 'VOID' THEN CONCAT('[', GET_JSON_OBJECT(a, b), ']') END"
)
_WRAPPED = template(f"CASE {_WRAP_OTHERS}")
_WRAPPED_IF_NEEDED = template(
    f"CASE WHEN REGEXP_LIKE({_KIND}, '\\\\AARRAY') THEN GET_JSON_OBJECT(a, b) {_WRAP_OTHERS}"
)
_EXISTS = null_if_any(template(f"COALESCE({_KIND} <> 'VOID', FALSE)"))
_EXISTS_OR = template(f"CASE WHEN a IS NULL THEN NULL WHEN {_KIND} <> 'VOID' THEN TRUE ELSE c END")
#: A value or another one; where a document is null, its lax paths are errors.
_STRICT = template("CASE WHEN a IS NULL THEN NULL ELSE COALESCE(b, c) END")
_LAX = template(
    f"CASE WHEN a IS NULL THEN NULL WHEN {_WHOLE_KIND} = 'VOID' THEN d ELSE COALESCE(b, c) END"
)
_TEXTS = (exp.DType.TEXT, exp.DType.VARCHAR)
_RETURNED = (exp.DType.INT, exp.DType.DOUBLE, exp.DType.BOOLEAN)
#: What JSON_QUERY returns around a value, by option.
_WRAPPERS: Mapping[str, Callable[..., exp.Expr]] = {
    **dict.fromkeys(("WITHOUT WRAPPER", "WITHOUT ARRAY WRAPPER"), _QUERY),
    **dict.fromkeys((f"WITH {kind}WRAPPER" for kind in ("", "ARRAY ", "UNCONDITIONAL ")), _WRAPPED),
    "WITH UNCONDITIONAL ARRAY WRAPPER": _WRAPPED,
    **dict.fromkeys(
        ("WITH CONDITIONAL WRAPPER", "WITH CONDITIONAL ARRAY WRAPPER"), _WRAPPED_IF_NEEDED
    ),
}
#: What options give instead of a value.
_ANSWERS: Mapping[str, exp.Expr] = {
    "TRUE": exp.true(),
    "UNKNOWN": exp.Null(),
    "ERROR": spark_function("RAISE_ERROR")(string("a path leads to no value of a JSON text")),
    "EMPTY ARRAY": string("[]"),
    "EMPTY OBJECT": string("{}"),
}
#: What is done instead of a value, by function.
_BEHAVIOURS = {
    "JSON_VALUE": ("NULL", "ERROR", "DEFAULT"),
    "JSON_QUERY": ("NULL", "ERROR", "EMPTY ARRAY", "EMPTY OBJECT"),
    "JSON_EXISTS": ("TRUE", "FALSE", "UNKNOWN", "ERROR"),
}


def json_call(node: JsonCall) -> exp.Expr:
    """Return ``JSON_VALUE(text, '$.a.b[0]')``, and the like."""
    if node.name in _BEHAVIOURS:
        return _read_part(node)
    return _make_document(node)


def _read_part(node: JsonCall) -> exp.Expr:
    if len(node.expressions) != 2:
        raise UnsupportedCallError("takes a text and a path")
    of, path = node.expressions
    match = _PATH.fullmatch(need_text(path, "path"))
    if match is None:
        raise UnsupportedCallError("takes a literal path of names and indexes, such as $.a.b[0]")
    is_lax = (match[1] or "").strip().lower() == "lax"
    options = [str(each) for each in node.args.get("options") or ()]
    _check_options(node.name, options)
    empty, error = (_instead(node, options, event) for event in ("EMPTY", "ERROR"))
    if node.name == "JSON_EXISTS":
        return with_type(_exists(of, string(match[2]), error, is_lax=is_lax), BOOLEAN)
    wrappers = [each for each in options if each in _WRAPPERS]
    make = _VALUE if node.name == "JSON_VALUE" else _WRAPPERS[(wrappers or ["WITHOUT WRAPPER"])[0]]
    value = _cast_value(make(of, string(match[2])), node)
    if (error if not is_lax else empty or error) is None:
        return value
    if is_lax:
        made = _LAX(of, value, empty or exp.Null(), error or exp.Null())
    else:
        made = _STRICT(of, value, error)
    return with_type(made, TEXT) if _is_text(node) else made


def _check_options(name: str, options: Sequence[str]) -> None:
    events = ("ERROR",) if name == "JSON_EXISTS" else ("EMPTY", "ERROR")
    behaviours = (f"{each} ON {event}" for each in _BEHAVIOURS[name] for event in events)
    allowed = {*behaviours, *(_WRAPPERS if name == "JSON_QUERY" else ())}
    for option in options:
        if option not in allowed:
            raise UnsupportedCallError(f"takes no {option}: use COALESCE for a default")


def _instead(node: JsonCall, options: Sequence[str], event: str) -> exp.Expr | None:
    """Return what an option gives instead of a value; None for NULL, and FALSE of JSON_EXISTS."""
    found = [each.removesuffix(f" ON {event}") for each in options if each.endswith(f" ON {event}")]
    if not found or found[0] in ("NULL", "FALSE"):
        return None
    if found[0] in _ANSWERS:
        return _ANSWERS[found[0]].copy()
    default: exp.Expr = node.args[f"default_on_{event.lower()}"].copy()
    if not _is_text(node):
        return exp.cast(default, node.args["returning"])
    if text_literal(default) is None:
        default = exp.cast(default, "STRING", dialect="spark")
    return default


def _cast_value(made: exp.Expr, node: JsonCall) -> exp.Expr:
    """Return a value as the type that it is returned as."""
    made = with_type(made, TEXT)
    if _is_text(node):
        return made
    if node.args["returning"].this not in _RETURNED or node.name != "JSON_VALUE":
        raise UnsupportedCallError("RETURNING takes STRING, INT, DOUBLE or BOOLEAN")
    return exp.cast(made, node.args["returning"])


def _is_text(node: JsonCall) -> bool:
    """Whether a value is returned as a string."""
    returning = node.args.get("returning")
    return returning is None or returning.this in _TEXTS


def _exists(of: exp.Expr, path: exp.Expr, error: exp.Expr | None, *, is_lax: bool) -> exp.Expr:
    if error is not None and not is_lax:
        return _EXISTS_OR(of, path, error)
    found = _EXISTS(of, path)
    return found if error is None else _LAX(of, found, exp.false(), error)


# ---- IS JSON

_IS_JSON = {
    "": template(f"({_WHOLE_KIND} IS NOT NULL)"),
    "OBJECT": template(f"COALESCE(REGEXP_LIKE({_WHOLE_KIND}, '\\\\AOBJECT'), FALSE)"),
    "ARRAY": template(f"COALESCE(REGEXP_LIKE({_WHOLE_KIND}, '\\\\AARRAY'), FALSE)"),
    "SCALAR": template(f"COALESCE(NOT REGEXP_LIKE({_WHOLE_KIND}, '\\\\A(OBJECT|ARRAY)'), FALSE)"),
}
_IS_JSON["VALUE"] = _IS_JSON[""]


def is_json(node: exp.Is) -> exp.Expr:
    """Return ``text IS JSON [VALUE | OBJECT | ARRAY | SCALAR]``; false for NULL."""
    kind = node.expression
    name = str(kind.this or "").upper() if not isinstance(kind.this, bool) else ""
    if name not in _IS_JSON or kind.args.get("unique") or kind.args.get("with_"):
        raise UnsupportedCallError("takes VALUE, OBJECT, ARRAY or SCALAR")
    return with_type(_IS_JSON[name](node.this), BOOLEAN)


# ---- documents

_ON_NULL = {"JSON_OBJECT": "NULL ON NULL", "JSON_ARRAY": "ABSENT ON NULL"}


def _make_document(node: JsonCall) -> exp.Expr:
    """Return a call that is written when the types of its values are known."""
    options = [*(node.args.get("options") or ())] or [_ON_NULL[node.name]]
    if len(options) > 1 or options[0] not in _ON_NULL.values():
        raise UnsupportedCallError("takes NULL ON NULL or ABSENT ON NULL")
    arguments: list[Any] = [each.copy() for each in node.expressions]
    if node.name == "JSON_OBJECT":
        for key in arguments[::2]:
            need_text(key, "key")
    return typed_call(node.name, string(options[0]), *arguments)
