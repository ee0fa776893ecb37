"""Functions of lists and maps."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from gpu_windows.sql.syntax.functions.building import (
    Function,
    null_if_any,
    spark_function,
    template,
)

#: NULL is in a list that has nulls; Spark gives NULL for a list with nulls and without the value.
_CONTAINS = template(
    "CASE WHEN a IS NULL THEN NULL "
    "WHEN b IS NULL THEN ARRAY_SIZE(ARRAY_COMPACT(a)) < ARRAY_SIZE(a) "
    "ELSE COALESCE(ARRAY_CONTAINS(a, b), FALSE) END"
)


def _join(of: exp.Expr, separator: exp.Expr, null: exp.Expr | None = None) -> exp.Expr:
    given = [each for each in (of, separator, null) if each is not None]
    return spark_function("ARRAY_JOIN")(*given)


_SAME = {
    **dict.fromkeys(("ARRAY_DISTINCT", "ARRAY_MAX", "ARRAY_MIN", "MAP_KEYS", "MAP_VALUES"), 1),
    **dict.fromkeys(("ARRAY_APPEND", "ARRAY_PREPEND", "ARRAY_UNION", "ARRAY_EXCEPT"), 2),
    "ARRAY_INTERSECT": 2,
}

#: The functions by name.
NESTED: Mapping[str, Function] = {
    "CARDINALITY": Function(1, 1, null_if_any(spark_function("SIZE"))),
    "ARRAY_CONTAINS": Function(2, 2, _CONTAINS),
    "ARRAY_POSITION": Function(2, 2, spark_function("ARRAY_POSITION")),
    "ARRAY_REVERSE": Function(1, 1, spark_function("REVERSE")),
    "ARRAY_JOIN": Function(2, 3, _join),
    "ARRAY_CONCAT": Function(2, 2, spark_function("CONCAT")),
    **{name: Function(count, count, spark_function(name)) for name, count in _SAME.items()},
}
