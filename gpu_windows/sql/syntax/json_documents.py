"""JSON_OBJECT, JSON_ARRAY and JSON_STRING as Spark expressions, by the types of their values."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

from gpu_windows.sql.syntax.functions.building import (
    UnsupportedCallError,
    spark_function,
    string,
    template,
)
from gpu_windows.sql.syntax.type_names import (
    BOOLEAN,
    DECIMAL,
    FLOATING,
    INTEGER,
    TEXT,
)

#: Metadata of a node: it is a document, which is not quoted as a value of another one.
_IS_DOCUMENT = "is_document"
_PLAIN = template("CAST(a AS STRING)")
_QUOTED = "TO_JSON(ARRAY(a))"
#: Values as JSON, by type; NULL for NULL.
_VALUES: Mapping[str, Callable[..., exp.Expr]] = {
    TEXT: template(
        f"CASE WHEN a IS NOT NULL THEN SUBSTRING({_QUOTED}, 2, LENGTH({_QUOTED}) - 2) END"
    ),
    INTEGER: _PLAIN,
    DECIMAL: _PLAIN,
    FLOATING: template(
        "CASE WHEN CAST(a AS STRING) IN ('NaN', 'Infinity', '-Infinity') "
        "THEN CONCAT('\"', CAST(a AS STRING), '\"') ELSE CAST(a AS STRING) END"
    ),
    BOOLEAN: template("CASE WHEN a THEN 'true' WHEN NOT a THEN 'false' END"),
}
_ENTRY = template("CONCAT(a, b)")
_FIRST = template("COALESCE(a, b)")
_OR_NULL = template("COALESCE(a, 'null')")
_WHOLE = template("CONCAT(a, b, c)")


def json_object(arguments: Sequence[exp.Expr], types: Sequence[str | None]) -> exp.Expr:
    """Return an object of keys and values in turn, after the first argument, which is an option.

    Keys are sorted by their UTF-16 code units, as in Flink; the last value of a key counts, but
    for a NULL that is absent.
    """
    by_key: dict[str, exp.Expr] = {}
    for at in range(1, len(arguments), 2):
        key, value = arguments[at].name, _value(arguments[at + 1], types[at + 1], "ABSENT ON NULL")
        is_absent = arguments[0].name == "ABSENT ON NULL"
        by_key[key] = _FIRST(value, by_key[key]) if is_absent and key in by_key else value
    if arguments[0].name == "NULL ON NULL":
        by_key = {key: _OR_NULL(value) for key, value in by_key.items()}
    keys = sorted(by_key, key=lambda key: key.encode("utf-16-be", "surrogatepass"))
    items = [_ENTRY(string(f"{json.dumps(key, ensure_ascii=False)}:"), by_key[key]) for key in keys]
    return _document("{", items, "}")


def json_array(arguments: Sequence[exp.Expr], types: Sequence[str | None]) -> exp.Expr:
    """Return an array of values, after the first argument, which is an option."""
    pairs = zip(arguments[1:], types[1:], strict=True)
    return _document("[", [_value(each, kind, arguments[0].name) for each, kind in pairs], "]")


def json_string(arguments: Sequence[exp.Expr], types: Sequence[str | None]) -> exp.Expr:
    """Return a value as JSON; NULL for NULL."""
    return _value(arguments[0], types[0], "ABSENT ON NULL")


def _value(of: exp.Expr, kind: str | None, option: str) -> exp.Expr:
    make = _VALUES.get(kind or "")
    if of.meta.get(_IS_DOCUMENT):
        found = of
    elif make is None:
        raise UnsupportedCallError("takes strings, numbers and booleans: cast other values before")
    else:
        found = make(of)
    return _OR_NULL(found) if option == "NULL ON NULL" else found


def _document(first: str, items: Sequence[exp.Expr], last: str) -> exp.Expr:
    made = string(first + last)
    if items:
        whole = spark_function("CONCAT_WS")(string(","), *items)
        made = _WHOLE(string(first), whole, string(last))
    made.meta[_IS_DOCUMENT] = True
    return made
