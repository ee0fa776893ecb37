"""Expressions over numbers: n INT, b BIGINT, d DOUBLE, f FLOAT, m DECIMAL(10, 2), sm and ti."""

from __future__ import annotations

from collections.abc import Iterator

from tests.oracle.expressions.templates import fill

_ALL = "n|b|d|f|m|sm|ti"
_FLOATS = "SQRT|EXP|LN|LOG10|LOG2|LOG|SIN|COS|TAN|ASIN|ACOS|ATAN|SINH|COSH|TANH|COT|DEGREES|RADIANS"


def numbers() -> Iterator[str]:
    """Yield the expressions."""
    yield from fill("{f}({x})", f="ABS|SIGN|CEIL|FLOOR|ROUND|TRUNCATE", x=_ALL)
    yield from fill("-{x}", x=_ALL)
    yield from fill("CEILING({x})", x="d|m|n")
    yield from fill("{f}({x}, {k})", f="ROUND|TRUNCATE", x="n|b|d|f|m", k="0|1|2|-1|-3|15")
    yield from fill("{f}({x}, n)", f="ROUND|TRUNCATE", x="d|m|n")
    yield from fill("{f}({x})", f=_FLOATS, x="n|d|m")
    yield from fill("{f}({x}, {y})", f="POWER|ATAN2|LOG", x="n|d|m|2", y="d|n|2|0.5")
    yield from ("PI()", "E()", "PI() * d")
    yield from fill("MOD({x}, {y})", x="n|b|m|sm|ti", y="3|-3|n")
    yield from fill("{x} % {y}", x="n|b|m|d", y="3|-2|7")
    yield from fill("{x} {o} {y}", x="n|b|d|f|m|sm", o="+|-|*", y="1|n|d|m|ti|2.5|1e0")
    yield from fill("{x} / {y}", x="n|b|d|f|m|sm", y="2|-2|2.0|2e0|3.0")
    yield from (
        "n / n",
        "d / d",
        "m / m",
        "d / 0",
        "n / 0",
        "m / 0",
        "n / b",
        "b / n",
        "sm / ti",
        "1 / 3.0",
        "10 / 4",
        "-7 / 2",
    )
    yield from fill("m / {y}", y="n|b|sm|ti|3|7|100|0.3|(m * m)|m * 3")
    yield from fill("{x} / m", x="n|b|sm|1|100|0.3")
    yield from fill("{x} % {y}", x="n|m|b", y="m|2.5|0.3")
    yield from ("MOD(n, m)", "MOD(m, 2.5)", "MOD(b, m)")
    yield from fill(
        "CAST({x} AS STRING)",
        x="d|f|n / 3.0|m / 3|TRUNCATE(m, 1)|TRUNCATE(d, 1)|FLOOR(m)|FLOOR(d)|CEIL(m)|m % 2.5"
        "|1e0 / 3|f / 3|d * f|CAST(d AS FLOAT)|SQRT(m)",
    )
    yield from fill("CAST({x} AS DECIMAL({p}))", x="d|f", p=["30, 10", "10, 4", "38, 0", "5, 5"])
    yield from fill("{x} {o} {y}", x="n|d|m|b", o="=|<>|<|<=|>|>=", y="1|d|2.5")
    yield from fill("{x} {o} {y}", x="n|d", o="IS DISTINCT FROM|IS NOT DISTINCT FROM", y="d|n|NULL")
    yield from fill(
        "{x} {o} BETWEEN {r}",
        x="n|d|m",
        o=["", "NOT"],
        r=["0 AND 10", "10 AND 0", "SYMMETRIC 10 AND 0"],
    )
    yield from (
        "n IN (7, 0, 3)",
        "n NOT IN (7, 0)",
        "d IN (2.5, 0)",
        "n IN (7, NULL)",
        "m IN (0.05, 1)",
    )
    yield from fill(
        "{f}({x})",
        f="GREATEST|LEAST",
        x=["n, 3", "n, b", "d, 1.5", "d, f", "m, n", "n, d", "b, m, 4", "sm, ti"],
    )
    yield from fill("COALESCE({x})", x=["n, 1", "d, 1.5", "n, b", "m, n", "n, d, m"])
    yield from fill("NULLIF({x})", x=["n, 7", "d, 2.5", "n, b", "m, 0.05"])
    yield from fill("IFNULL({x})", x=["n, 0", "d, 0", "m, n"])
    yield from fill("IF({x})", x=["n > 0, n, 0", "n > 0, d, m", "d > 0, b, n"])
    yield from (
        "CASE WHEN n > 0 THEN 1 WHEN n < 0 THEN -1 ELSE 0 END",
        "CASE n WHEN 7 THEN 'seven' WHEN 0 THEN 'zero' END",
        "CASE WHEN d > 1 THEN n ELSE m END",
    )
    yield from fill("{f}({x})", f="HEX|BIN", x="n|b|sm")
    yield from fill("CHR({x})", x="n|b|sm")
    yield from fill("{f}({x})", f="BITAND", x=["n, 6", "b, n"])
    yield from (
        "CAST(d AS INT)",
        "CAST(n AS STRING)",
        "n IS NULL",
        "d IS NOT NULL",
        "NOT (n > 3)",
        "n > 0 AND d > 0",
        "n > 0 OR d > 0",
    )
    yield from (
        "(n > 0) IS TRUE",
        "(n > 0) IS NOT TRUE",
        "(n > 0) IS FALSE",
        "(n > 0) IS UNKNOWN",
        "(n > 0) IS NOT UNKNOWN",
    )
    yield from (
        "UUID() IS NULL",
        "1.50",
        "1e3",
        "123456789012",
        "-5",
        "2.5 * 2",
        "0.1 + 0.2",
        "1e0 / 3",
        "PERCENTILE_X(n)",
    )
