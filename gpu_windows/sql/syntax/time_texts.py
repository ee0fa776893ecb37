"""Times cast AS STRING, with Flink's digits of seconds."""

from __future__ import annotations

from sqlglot import exp

from gpu_windows.sql.syntax.functions.building import spark_function, string, template

_FORMAT = "yyyy-MM-dd HH:mm:ss"
#: Milliseconds, as of TIMESTAMP(3); microseconds of times that have some.
_SHORTENED = template(f"REGEXP_REPLACE(DATE_FORMAT(a, '{_FORMAT}.SSSSSS'), '000\\\\z', '')")


def time_text(of: exp.Expr) -> exp.Expr:
    """Return a time as a text.

    Seconds have the digits of the type, if the expression says it. A column is a TIMESTAMP(3); its
    times have six digits if they are not whole milliseconds, so that none is lost.
    """
    digits = _digits(of)
    if digits is None:
        return _SHORTENED(of)
    pattern = _FORMAT if digits == 0 else f"{_FORMAT}.{'S' * digits}"
    return spark_function("DATE_FORMAT")(of, string(pattern))


def _digits(of: exp.Expr) -> int | None:
    """Return the digits of seconds of a cast or a literal; None for other expressions."""
    while isinstance(of, exp.Paren):
        of = of.this
    if isinstance(of, exp.Anonymous) and of.name.upper() == "DATE_TRUNC":
        of = of.expressions[1]  # what drops the digits that a type lacks
        explicit = isinstance(of, exp.Cast) and bool(of.to.expressions)
        return _digits(of) if explicit else None
    if not isinstance(of, exp.Cast) or of.to.this == exp.DType.TIMESTAMPNTZ:
        return None  # a rule has cast a reading of a clock to its own type
    if isinstance(of.this, exp.Literal):
        return min(len(of.this.name.partition(".")[2]), 6)
    return int(of.to.expressions[0].name) if of.to.expressions else 6
