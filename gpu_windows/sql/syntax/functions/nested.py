"""Functions of lists and maps."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from gpu_windows.sql.syntax.functions.building import (
    UNLIMITED,
    Function,
    UnsupportedCallError,
    need_some_text,
    null_if_any,
    number,
    spark_function,
    spark_functions,
    string,
    template,
)
from gpu_windows.sql.syntax.functions.texts import quote_pattern

#: NULL is in a list that has nulls; Spark gives NULL for a list with nulls and without the value.
_CONTAINS = template(
    "CASE WHEN a IS NULL THEN NULL "
    "WHEN b IS NULL THEN ARRAY_SIZE(ARRAY_COMPACT(a)) < ARRAY_SIZE(a) "
    "ELSE COALESCE(ARRAY_CONTAINS(a, b), FALSE) END"
)


def _row(*fields: exp.Expr) -> exp.Expr:
    """Return a row, whose fields have Flink's names."""
    pairs = ((string(f"EXPR${at}"), each) for at, each in enumerate(fields))
    return spark_function("NAMED_STRUCT")(*(part for pair in pairs for part in pair))


_TOO_MANY = "ELEMENT takes a list of one element at most"
_ELEMENT = template(
    f"CASE WHEN SIZE(a) > 1 THEN RAISE_ERROR('{_TOO_MANY}') ELSE TRY_ELEMENT_AT(a, 1) END"
)
#: A part by the places of its first and its last element, from 1, or from the end if negative.
_FIRST = "CASE WHEN b < 0 THEN GREATEST(SIZE(a) + b + 1, 1) WHEN b = 0 THEN 1 ELSE b END"
_LAST = "CASE WHEN c < 0 THEN SIZE(a) + c + 1 ELSE LEAST(c, SIZE(a)) END"
_SLICE = template(f"SLICE(a, {_FIRST}, GREATEST({_LAST} - {_FIRST} + 1, 0))")


def _slice(of: exp.Expr, first: exp.Expr, last: exp.Expr | None = None) -> exp.Expr:
    return null_if_any(_SLICE)(of, first, number(-1) if last is None else last)


_ORDERS = {
    ("TRUE", "TRUE"): template("SORT_ARRAY(a, TRUE)"),
    ("TRUE", "FALSE"): template("ARRAY_SORT(a)"),
    ("FALSE", "FALSE"): template("SORT_ARRAY(a, FALSE)"),
}


def _sort(
    of: exp.Expr, ascending: exp.Expr | None = None, nulls_first: exp.Expr | None = None
) -> exp.Expr:
    order = "TRUE" if ascending is None else ascending.sql().upper()
    nulls = order if nulls_first is None else nulls_first.sql().upper()
    if (order, nulls) not in _ORDERS:
        rule = "takes a list, whether it is ascending, and whether nulls are first: TRUE or FALSE"
        raise UnsupportedCallError(f"{rule}; nulls are not first in descending order")
    return _ORDERS[order, nulls](of)


_SPLIT = template("SLICE(SPLIT(a, b), 1, CASE WHEN a = '' THEN 0 ELSE LENGTH(a) + 1 END)")


def _split(of: exp.Expr, separator: exp.Expr) -> exp.Expr:
    """Return the parts of a text; of an empty text there are none."""
    return _SPLIT(of, string(quote_pattern(need_some_text(separator, "separator"))))


#: The functions by name.
NESTED: Mapping[str, Function] = {
    "CARDINALITY": Function(1, 1, null_if_any(spark_function("SIZE"))),
    "ARRAY_CONTAINS": Function(2, 2, _CONTAINS),
    "ARRAY_REVERSE": Function(1, 1, spark_function("REVERSE")),
    "ARRAY_JOIN": Function(2, 3, spark_function("ARRAY_JOIN")),
    "ARRAY_CONCAT": Function(1, UNLIMITED, spark_function("CONCAT")),
    "ARRAY_SORT": Function(1, 3, _sort),
    "ARRAY_SLICE": Function(2, 3, _slice),
    "ELEMENT": Function(1, 1, _ELEMENT),
    "SPLIT": Function(2, 2, _split),
    "ROW": Function(1, UNLIMITED, _row),
    **spark_functions(1, "ARRAY_DISTINCT ARRAY_MAX ARRAY_MIN MAP_KEYS MAP_VALUES MAP_ENTRIES"),
    **spark_functions(
        2,
        "ARRAY_POSITION ARRAY_APPEND ARRAY_PREPEND ARRAY_UNION ARRAY_EXCEPT ARRAY_INTERSECT "
        "ARRAY_REMOVE MAP_FROM_ARRAYS",
    ),
}
