"""Functions of numbers, and of values of any type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from gpu_windows.sql.syntax.functions.building import (
    UNLIMITED,
    Function,
    UnsupportedCallError,
    integer_literal,
    null_if_any,
    number,
    spark_function,
    spark_functions,
    template,
    typed_call,
)

#: Maximum number of digits that numbers are truncated to.
MAX_DIGITS = 15


def _logarithm(name: str) -> Callable[..., exp.Expr]:
    """Return a builder of a logarithm: of 0 or less, -Infinity or NaN in Flink, NULL in Spark."""
    return template(
        "CASE WHEN a = 0 THEN CAST('-Infinity' AS DOUBLE) WHEN a < 0 THEN CAST('NaN' AS DOUBLE) "
        f"ELSE {name}(a) END"
    )


def _log(one: exp.Expr, other: exp.Expr | None = None) -> exp.Expr:
    """Return ``LOG(x)``, the natural logarithm; ``LOG(base, x)`` divides two of them."""
    natural = _logarithm("LN")
    if other is None:
        return natural(one)
    return exp.Paren(this=exp.Div(this=natural(other), expression=natural(one)))


def _round(of: exp.Expr, *digits: exp.Expr) -> exp.Expr:
    if digits and integer_literal(digits[0]) is None:
        raise UnsupportedCallError("takes a literal number of digits")
    return spark_function("ROUND")(of, *digits)


def _truncate(of: exp.Expr, digits: exp.Expr | None = None) -> exp.Expr:
    count = 0 if digits is None else integer_literal(digits)
    if count is None or abs(count) > MAX_DIGITS:
        raise UnsupportedCallError(f"takes a literal number of up to {MAX_DIGITS} digits")
    return typed_call("TRUNCATE", of, number(count))


def _unary(kind: Any) -> Callable[..., exp.Expr]:
    return lambda of: kind(this=of)


def _variadic(kind: Any) -> Callable[..., exp.Expr]:
    return lambda first, *others: kind(this=first, expressions=[*others])


#: The functions by name.
NUMBERS: Mapping[str, Function] = {
    "ABS": Function(1, 1, _unary(exp.Abs)),
    "CEILING": Function(1, 1, _unary(exp.Ceil)),
    "MOD": Function(2, 2, template("(a % b)")),
    "COALESCE": Function(1, UNLIMITED, _variadic(exp.Coalesce)),
    "IFNULL": Function(2, 2, _variadic(exp.Coalesce)),
    "NULLIF": Function(2, 2, lambda a, b: exp.Nullif(this=a, expression=b)),
    **spark_functions(0, "PI E"),
    **spark_functions(1, "SQRT EXP SIGN SIN COS TAN ASIN ACOS ATAN SINH COSH TANH COT"),
    **spark_functions(1, "DEGREES RADIANS"),
    **spark_functions(2, "POWER ATAN2"),
    "ROUND": Function(1, 2, _round),
    "TRUNCATE": Function(1, 2, _truncate),
    **{name: Function(1, 1, _logarithm(name)) for name in ("LN", "LOG10", "LOG2")},
    "LOG": Function(1, 2, _log),
    **{
        name: Function(2, UNLIMITED, null_if_any(spark_function(name)))
        for name in ("GREATEST", "LEAST")
    },
}
