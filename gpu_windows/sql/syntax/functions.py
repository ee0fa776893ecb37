"""The scalar functions of statements, as Spark expressions with Flink's results.

Functions without an entry are refused. Results were compared with values recorded from Flink 2.3
(`tests/sql/functions.json`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from gpu_windows.sql.syntax.regex_groups import groups_in_every_match

#: Time formats of letters that mean the same in Flink and Spark.
_FORMAT = re.compile(r"(?:[yMdHhmsSaE]|[^A-Za-z'\[\]{}#]|'(?:[^']|'')*')*")
_FLOOR_UNITS = ("YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
_EXTRACT_UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DOY", "DOW", "HOUR", "MINUTE")


class UnsupportedCallError(Exception):
    """A call whose result would differ from Flink's; the message is the rule."""


@dataclass(frozen=True)
class Function:
    """A function.

    Parameters
    ----------
    least, most : int
        Number of arguments.
    make : callable
        Returns the expression for arguments.
    on_arrow : bool
        Whether it is covered over Arrow tables.
    """

    min_arguments: int
    max_arguments: int
    make: Callable[..., exp.Expr]
    on_arrow: bool = False


def _spark_function(name: str) -> Callable[..., exp.Expr]:
    return lambda *each: exp.Anonymous(this=name, expressions=[*each])


def _integer_literal(node: exp.Expr | None, min_arguments: int) -> int | None:
    """Return the value of an integer literal of at least a minimum; None for other nodes."""
    if isinstance(node, exp.Literal) and node.is_int and int(node.name) >= min_arguments:
        return int(node.name)
    return None


def _string_literal(node: exp.Expr | None) -> str | None:
    return str(node.this) if isinstance(node, exp.Literal) and node.is_string else None


def _null_if_any(make: Callable[..., exp.Expr]) -> Callable[..., exp.Expr]:
    """Return a builder of a call that is NULL if an argument is; Spark skips nulls."""

    def build(*each: exp.Expr) -> exp.Expr:
        nulls = [exp.Is(this=one.copy(), expression=exp.Null()) for one in each]
        value = make(*each)
        return exp.Case(ifs=[exp.If(this=exp.or_(*nulls), true=exp.Null())], default=value)

    return build


def _logarithm(name: str) -> Callable[..., exp.Expr]:
    """Return a builder of a logarithm: of 0 or less, -Infinity or NaN in Flink, NULL in Spark."""

    def build(of: exp.Expr) -> exp.Expr:
        zero = exp.Literal.number(0)

        def odd(kind: type[exp.Binary], value: str) -> exp.If:
            number = exp.cast(exp.Literal.string(value), "DOUBLE")
            return exp.If(this=kind(this=of.copy(), expression=zero.copy()), true=number)

        value = exp.Anonymous(this=name, expressions=[of])
        return exp.Case(ifs=[odd(exp.EQ, "-Infinity"), odd(exp.LT, "NaN")], default=value)

    return build


def _substring(of: exp.Expr, start: exp.Expr, length: exp.Expr | None = None) -> exp.Expr:
    if _integer_literal(start, 0) is None or (
        length is not None and _integer_literal(length, 0) is None
    ):
        raise UnsupportedCallError("takes a literal start and length")
    return exp.Substring(this=of, start=start, length=length)


def _make_pad(name: str) -> Callable[..., exp.Expr]:
    def build(of: exp.Expr, length: exp.Expr, pad: exp.Expr) -> exp.Expr:
        if _integer_literal(length, 0) is None or not _string_literal(pad):
            raise UnsupportedCallError("takes a literal length and a literal string")
        return exp.Anonymous(this=name, expressions=[of, length, pad])

    return build


def _make_trim(position: str | None) -> Callable[..., exp.Expr]:
    def build(of: exp.Expr, characters: exp.Expr | None = None) -> exp.Expr:
        return exp.Trim(this=of, expression=characters, position=position or "BOTH")

    return build


def _replace_text(of: exp.Expr, what: exp.Expr, by: exp.Expr) -> exp.Expr:
    if not _string_literal(what):
        raise UnsupportedCallError("takes a literal search string that is not empty")
    return exp.Anonymous(this="REPLACE", expressions=[of, what, by])


def _locate(what: exp.Expr, of: exp.Expr, start: exp.Expr | None = None) -> exp.Expr:
    if start is not None and _integer_literal(start, 1) is None:
        raise UnsupportedCallError("takes a literal start from 1")
    return exp.Anonymous(this="LOCATE", expressions=[e for e in (what, of, start) if e is not None])


def _extract_group(of: exp.Expr, pattern: exp.Expr, group: exp.Expr | None = None) -> exp.Expr:
    """Return a group of the first match, by default the whole match; NULL without a match."""
    text, index = _string_literal(pattern), 0 if group is None else _integer_literal(group, 0)
    if text is None or index is None:
        raise UnsupportedCallError("takes a literal pattern and group")
    groups = groups_in_every_match(text)
    if index >= len(groups):
        raise UnsupportedCallError(
            f"takes one of the groups of its pattern: 0 to {len(groups) - 1}"
        )
    if not groups[index]:
        rule = "takes a group that every match has: an optional group is NULL in Flink"
        raise UnsupportedCallError(f"{rule}, and an empty string in Spark")
    value = _spark_function("REGEXP_EXTRACT")(of.copy(), pattern.copy(), exp.Literal.number(index))
    return exp.Case(ifs=[exp.If(this=_spark_function("REGEXP_LIKE")(of, pattern), true=value)])


def _replace_matches(of: exp.Expr, pattern: exp.Expr, by: exp.Expr) -> exp.Expr:
    """Replace matches; in Flink, $ and backslash in the replacement are literal."""
    text = _string_literal(by)
    if text is None:
        raise UnsupportedCallError("takes a literal replacement")
    plain = exp.Literal.string(text.replace("\\", "\\\\").replace("$", "\\$"))
    return _spark_function("REGEXP_REPLACE")(of, pattern, plain)


def _matches(of: exp.Expr, pattern: exp.Expr) -> exp.Expr:
    if not _string_literal(pattern):
        raise UnsupportedCallError("takes a literal pattern that is not empty")
    return _spark_function("REGEXP_LIKE")(of, pattern)


def _split_index(of: exp.Expr, separator: exp.Expr, index: exp.Expr) -> exp.Expr:
    text = _string_literal(separator)
    if not text or _integer_literal(index, 0) is None:
        raise UnsupportedCallError("takes a literal separator and a literal index from 0")
    quoted = exp.Literal.string("".join(f"\\{c}" if c in _REGEX_CHARACTERS else c for c in text))
    parts = _spark_function("SPLIT")(exp.Nullif(this=of, expression=exp.Literal.string("")), quoted)
    return _spark_function("GET")(parts, index)


_REGEX_CHARACTERS = set("\\^$.|?*+()[]{}")


def _make_format(name: str) -> Callable[..., exp.Expr]:
    def build(of: exp.Expr, pattern: exp.Expr | None = None) -> exp.Expr:
        if pattern is not None:
            text = _string_literal(pattern)
            if text is None or not _FORMAT.fullmatch(text):
                raise UnsupportedCallError("takes a literal format of y M d H h m s S a E")
        return exp.Anonymous(this=name, expressions=[e for e in (of, pattern) if e is not None])

    return build


def _to_timestamp(of: exp.Expr, precision: exp.Expr | None = None) -> exp.Expr:
    digits = 3 if precision is None else _integer_literal(precision, 0)
    if digits not in (0, 3):
        raise UnsupportedCallError(
            "takes a literal precision: 0 for seconds, or 3 for milliseconds"
        )
    return _spark_function("TIMESTAMP_MILLIS" if digits else "TIMESTAMP_SECONDS")(of)


def _in_parentheses(node: exp.Expr) -> exp.Expr:
    return exp.Paren(this=node) if isinstance(node, exp.Binary) else node


def _remainder(one: exp.Expr, other: exp.Expr) -> exp.Expr:
    return exp.Paren(this=exp.Mod(this=_in_parentheses(one), expression=_in_parentheses(other)))


def _unary(kind: Any) -> Callable[..., exp.Expr]:
    return lambda of: kind(this=of)


def _variadic(kind: Any) -> Callable[..., exp.Expr]:
    return lambda first, *others: kind(this=first, expressions=[*others])


_LENGTH = Function(1, 1, _unary(exp.Length), on_arrow=True)
_UNLIMITED = 1_000
_SAME_UNARY = (
    *("REVERSE", "MD5", "SHA1", "SQRT", "EXP", "SIGN", "SIN", "COS", "TAN", "HEX", "BIN"),
    *("DEGREES", "RADIANS"),
    *("YEAR", "QUARTER", "MONTH", "DAYOFYEAR", "DAYOFMONTH", "DAYOFWEEK", "HOUR", "MINUTE"),
    "SECOND",
)
_SAME_BINARY = ("POWER", "LEFT", "RIGHT", "REPEAT", "STARTSWITH", "ENDSWITH", "INSTR")

#: The functions by name.
FUNCTIONS: Mapping[str, Function] = {
    "UPPER": Function(1, 1, _unary(exp.Upper), on_arrow=True),
    "LOWER": Function(1, 1, _unary(exp.Lower), on_arrow=True),
    **dict.fromkeys(("CHAR_LENGTH", "CHARACTER_LENGTH", "LENGTH"), _LENGTH),
    "ABS": Function(1, 1, _unary(exp.Abs), on_arrow=True),
    "CEILING": Function(1, 1, _unary(exp.Ceil), on_arrow=True),
    "MOD": Function(2, 2, _remainder, on_arrow=True),
    "CONCAT": Function(
        1, _UNLIMITED, lambda *e: exp.Concat(expressions=[*e], safe=True), on_arrow=True
    ),
    "COALESCE": Function(1, _UNLIMITED, _variadic(exp.Coalesce), on_arrow=True),
    "IFNULL": Function(2, 2, _variadic(exp.Coalesce), on_arrow=True),
    "NULLIF": Function(2, 2, lambda a, b: exp.Nullif(this=a, expression=b), on_arrow=True),
    **{name: Function(1, 1, _spark_function(name)) for name in _SAME_UNARY},
    **{name: Function(2, 2, _spark_function(name)) for name in _SAME_BINARY},
    "PI": Function(0, 0, _spark_function("PI")),
    "ROUND": Function(1, 2, _spark_function("ROUND")),
    "TRANSLATE": Function(3, 3, _spark_function("TRANSLATE")),
    "CONCAT_WS": Function(2, _UNLIMITED, _spark_function("CONCAT_WS")),
    "SHA256": Function(1, 1, lambda of: _spark_function("SHA2")(of, exp.Literal.number(256))),
    "WEEK": Function(1, 1, _spark_function("WEEKOFYEAR")),
    "CARDINALITY": Function(1, 1, _spark_function("ARRAY_SIZE")),
    "LN": Function(1, 1, _logarithm("LN")),
    "LOG10": Function(1, 1, _logarithm("LOG10")),
    "LOG2": Function(1, 1, _logarithm("LOG2")),
    "LOG": Function(1, 1, _logarithm("LN")),
    "GREATEST": Function(2, _UNLIMITED, _null_if_any(_spark_function("GREATEST"))),
    "LEAST": Function(2, _UNLIMITED, _null_if_any(_spark_function("LEAST"))),
    "SUBSTR": Function(2, 3, _substring),
    "LPAD": Function(3, 3, _make_pad("LPAD")),
    "RPAD": Function(3, 3, _make_pad("RPAD")),
    "LTRIM": Function(1, 2, _make_trim("LEADING")),
    "RTRIM": Function(1, 2, _make_trim("TRAILING")),
    "BTRIM": Function(1, 2, _make_trim(None)),
    "REPLACE": Function(3, 3, _replace_text),
    "LOCATE": Function(2, 3, _locate),
    "REGEXP": Function(2, 2, _matches),
    "REGEXP_EXTRACT": Function(2, 3, _extract_group),
    "REGEXP_REPLACE": Function(3, 3, _replace_matches),
    "SPLIT_INDEX": Function(3, 3, _split_index),
    "DATE_FORMAT": Function(2, 2, _make_format("DATE_FORMAT")),
    "FROM_UNIXTIME": Function(1, 2, _make_format("FROM_UNIXTIME")),
    "TO_TIMESTAMP_LTZ": Function(1, 2, _to_timestamp),
}


def substring(node: exp.Substring) -> exp.Expr:
    """Return ``SUBSTRING(s, 2, 3)``, ``SUBSTRING(s FROM 2 FOR 3)``."""
    start = node.args.get("start")
    if start is None:
        raise UnsupportedCallError("takes a start")
    return _substring(node.this, start, node.args.get("length"))


def position(node: exp.StrPosition) -> exp.Expr:
    """Return ``POSITION('a' IN s)``."""
    return _locate(node.args["substr"], node.this)


def floor_or_ceil(node: exp.Floor | exp.Ceil) -> exp.Expr:
    """Return ``FLOOR(x)``, ``FLOOR(ts TO DAY)``."""
    to = node.args.get("to")
    if node.args.get("decimals") is not None:
        raise UnsupportedCallError("takes one number")
    if to is None:
        return node
    unit = to.name.upper()
    if isinstance(node, exp.Ceil) or unit not in _FLOOR_UNITS:
        raise UnsupportedCallError(f"of a time must be FLOOR(time TO {', '.join(_FLOOR_UNITS)})")
    return _spark_function("DATE_TRUNC")(exp.Literal.string(unit), node.this)


def extract(node: exp.Extract) -> exp.Expr:
    """Return ``EXTRACT(DAY FROM ts)``; seconds are whole numbers."""
    unit = node.name.upper()
    if unit == "SECOND":
        return _spark_function("SECOND")(node.expression)
    if unit not in _EXTRACT_UNITS:
        raise UnsupportedCallError(f"takes one of {', '.join((*_EXTRACT_UNITS, 'SECOND'))}")
    return exp.Extract(this=exp.Var(this=unit), expression=node.expression)


#: Functions with a grammar of their own, by class of node.
SPECIAL: Mapping[type[exp.Expr], Callable[[Any], exp.Expr]] = {
    exp.Substring: substring,
    exp.StrPosition: position,
    exp.Floor: floor_or_ceil,
    exp.Ceil: floor_or_ceil,
    exp.Extract: extract,
    exp.Trim: lambda node: node,
    exp.If: lambda node: node,
    exp.Case: lambda node: node,
    exp.Cast: lambda node: node,
    exp.TryCast: lambda node: node,
}
