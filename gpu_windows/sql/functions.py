"""The functions of statements: those that mean in Flink what is computed for them here.

A function that is in no entry is refused. What entries give was compared with values that a Flink
2.3 gave (`tests/sql/functions.json`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from gpu_windows.sql.regular import groups_of

#: Letters of formats of times that mean the same in Flink and Spark.
_FORMAT = re.compile(r"(?:[yMdHhmsSaE]|[^A-Za-z'\[\]{}#]|'(?:[^']|'')*')*")
_FLOORS = ("YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
_PARTS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DOY", "DOW", "HOUR", "MINUTE")


class RefusedCallError(Exception):
    """What a call has that does not mean the same: the rule."""


@dataclass(frozen=True)
class Function:
    """A function.

    Parameters
    ----------
    least, most : int
        How many arguments it takes.
    make : callable
        Returns the expression for arguments.
    on_arrow : bool
        Whether it is computed over Arrow tables.
    """

    least: int
    most: int
    make: Callable[..., exp.Expr]
    on_arrow: bool = False


def _spark(name: str) -> Callable[..., exp.Expr]:
    return lambda *each: exp.Anonymous(this=name, expressions=[*each])


def _number(node: exp.Expr | None, least: int) -> int | None:
    """Return a number that is written out, if it is one and not less."""
    if isinstance(node, exp.Literal) and node.is_int and int(node.name) >= least:
        return int(node.name)
    return None


def _text(node: exp.Expr | None) -> str | None:
    return str(node.this) if isinstance(node, exp.Literal) and node.is_string else None


def _null_if_any(make: Callable[..., exp.Expr]) -> Callable[..., exp.Expr]:
    """Return what is NULL where an argument is, as in Flink; Spark leaves nulls out."""

    def build(*each: exp.Expr) -> exp.Expr:
        nulls = [exp.Is(this=one.copy(), expression=exp.Null()) for one in each]
        value = make(*each)
        return exp.Case(ifs=[exp.If(this=exp.or_(*nulls), true=exp.Null())], default=value)

    return build


def _logarithm(name: str) -> Callable[..., exp.Expr]:
    """Return a logarithm: of 0 and less it is no number in Flink, and NULL in Spark."""

    def build(of: exp.Expr) -> exp.Expr:
        zero = exp.Literal.number(0)

        def odd(kind: type[exp.Binary], value: str) -> exp.If:
            number = exp.cast(exp.Literal.string(value), "DOUBLE")
            return exp.If(this=kind(this=of.copy(), expression=zero.copy()), true=number)

        value = exp.Anonymous(this=name, expressions=[of])
        return exp.Case(ifs=[odd(exp.EQ, "-Infinity"), odd(exp.LT, "NaN")], default=value)

    return build


def _substring(of: exp.Expr, start: exp.Expr, length: exp.Expr | None = None) -> exp.Expr:
    if _number(start, 0) is None or (length is not None and _number(length, 0) is None):
        raise RefusedCallError("begins at, and has, a number of characters that is written out")
    return exp.Substring(this=of, start=start, length=length)


def _make_pad(name: str) -> Callable[..., exp.Expr]:
    def build(of: exp.Expr, length: exp.Expr, pad: exp.Expr) -> exp.Expr:
        if _number(length, 0) is None or not _text(pad):
            raise RefusedCallError("takes a length and a text that are written out")
        return exp.Anonymous(this=name, expressions=[of, length, pad])

    return build


def _make_trim(position: str | None) -> Callable[..., exp.Expr]:
    def build(of: exp.Expr, characters: exp.Expr | None = None) -> exp.Expr:
        return exp.Trim(this=of, expression=characters, position=position or "BOTH")

    return build


def _replace_text(of: exp.Expr, what: exp.Expr, by: exp.Expr) -> exp.Expr:
    if not _text(what):
        raise RefusedCallError("takes the text that it looks for written out, and not empty")
    return exp.Anonymous(this="REPLACE", expressions=[of, what, by])


def _locate(what: exp.Expr, of: exp.Expr, start: exp.Expr | None = None) -> exp.Expr:
    if start is not None and _number(start, 1) is None:
        raise RefusedCallError("begins at a number from 1 that is written out")
    return exp.Anonymous(this="LOCATE", expressions=[e for e in (what, of, start) if e is not None])


def _extract_group(of: exp.Expr, pattern: exp.Expr, group: exp.Expr | None = None) -> exp.Expr:
    """Return a group of the first match: the whole if none is named, NULL without a match."""
    text, place = _text(pattern), 0 if group is None else _number(group, 0)
    if text is None or place is None:
        raise RefusedCallError("takes a pattern and a group that are written out")
    groups = groups_of(text)
    if place >= len(groups):
        raise RefusedCallError(f"takes one of the groups of its pattern: 0 to {len(groups) - 1}")
    if not groups[place]:
        rule = "takes a group that every match has: one that may be left out is NULL in Flink"
        raise RefusedCallError(f"{rule}, and an empty text in Spark")
    value = _spark("REGEXP_EXTRACT")(of.copy(), pattern.copy(), exp.Literal.number(place))
    return exp.Case(ifs=[exp.If(this=_spark("REGEXP_LIKE")(of, pattern), true=value)])


def _replace_matches(of: exp.Expr, pattern: exp.Expr, by: exp.Expr) -> exp.Expr:
    """Return texts with others for matches: in Flink a dollar sign and a backslash are plain."""
    text = _text(by)
    if text is None:
        raise RefusedCallError("takes a text that is written out for what it finds")
    plain = exp.Literal.string(text.replace("\\", "\\\\").replace("$", "\\$"))
    return _spark("REGEXP_REPLACE")(of, pattern, plain)


def _matches(of: exp.Expr, pattern: exp.Expr) -> exp.Expr:
    if not _text(pattern):
        raise RefusedCallError("takes a pattern that is written out, and not empty")
    return _spark("REGEXP_LIKE")(of, pattern)


def _split_index(of: exp.Expr, separator: exp.Expr, place: exp.Expr) -> exp.Expr:
    text = _text(separator)
    if not text or _number(place, 0) is None:
        raise RefusedCallError("takes a separator and a place from 0 that are written out")
    quoted = exp.Literal.string("".join(f"\\{c}" if c in _SPECIAL else c for c in text))
    parts = _spark("SPLIT")(exp.Nullif(this=of, expression=exp.Literal.string("")), quoted)
    return _spark("GET")(parts, place)


_SPECIAL = set("\\^$.|?*+()[]{}")


def _make_format(name: str) -> Callable[..., exp.Expr]:
    def build(of: exp.Expr, pattern: exp.Expr | None = None) -> exp.Expr:
        if pattern is not None:
            text = _text(pattern)
            if text is None or not _FORMAT.fullmatch(text):
                raise RefusedCallError("takes a format that is written out, of y M d H h m s S a E")
        return exp.Anonymous(this=name, expressions=[e for e in (of, pattern) if e is not None])

    return build


def _instant(of: exp.Expr, precision: exp.Expr | None = None) -> exp.Expr:
    digits = 3 if precision is None else _number(precision, 0)
    if digits not in (0, 3):
        raise RefusedCallError("takes 0, for seconds, or 3, for milliseconds, written out")
    return _spark("TIMESTAMP_MILLIS" if digits else "TIMESTAMP_SECONDS")(of)


def _in_parentheses(node: exp.Expr) -> exp.Expr:
    return exp.Paren(this=node) if isinstance(node, exp.Binary) else node


def _remainder(one: exp.Expr, other: exp.Expr) -> exp.Expr:
    return exp.Paren(this=exp.Mod(this=_in_parentheses(one), expression=_in_parentheses(other)))


def _one(kind: Any) -> Callable[..., exp.Expr]:
    return lambda of: kind(this=of)


def _several(kind: Any) -> Callable[..., exp.Expr]:
    return lambda first, *others: kind(this=first, expressions=[*others])


_LENGTH = Function(1, 1, _one(exp.Length), on_arrow=True)
_MANY = 1_000
_SAME_OF_ONE = (
    *("REVERSE", "MD5", "SHA1", "SQRT", "EXP", "SIGN", "SIN", "COS", "TAN", "HEX", "BIN"),
    *("DEGREES", "RADIANS"),
    *("YEAR", "QUARTER", "MONTH", "DAYOFYEAR", "DAYOFMONTH", "DAYOFWEEK", "HOUR", "MINUTE"),
    "SECOND",
)
_SAME_OF_TWO = ("POWER", "LEFT", "RIGHT", "REPEAT", "STARTSWITH", "ENDSWITH", "INSTR")

#: By name: what is accepted, and as what.
FUNCTIONS: Mapping[str, Function] = {
    "UPPER": Function(1, 1, _one(exp.Upper), on_arrow=True),
    "LOWER": Function(1, 1, _one(exp.Lower), on_arrow=True),
    **dict.fromkeys(("CHAR_LENGTH", "CHARACTER_LENGTH", "LENGTH"), _LENGTH),
    "ABS": Function(1, 1, _one(exp.Abs), on_arrow=True),
    "CEILING": Function(1, 1, _one(exp.Ceil), on_arrow=True),
    "MOD": Function(2, 2, _remainder, on_arrow=True),
    "CONCAT": Function(1, _MANY, lambda *e: exp.Concat(expressions=[*e], safe=True), on_arrow=True),
    "COALESCE": Function(1, _MANY, _several(exp.Coalesce), on_arrow=True),
    "IFNULL": Function(2, 2, _several(exp.Coalesce), on_arrow=True),
    "NULLIF": Function(2, 2, lambda a, b: exp.Nullif(this=a, expression=b), on_arrow=True),
    **{name: Function(1, 1, _spark(name)) for name in _SAME_OF_ONE},
    **{name: Function(2, 2, _spark(name)) for name in _SAME_OF_TWO},
    "PI": Function(0, 0, _spark("PI")),
    "ROUND": Function(1, 2, _spark("ROUND")),
    "TRANSLATE": Function(3, 3, _spark("TRANSLATE")),
    "CONCAT_WS": Function(2, _MANY, _spark("CONCAT_WS")),
    "SHA256": Function(1, 1, lambda of: _spark("SHA2")(of, exp.Literal.number(256))),
    "WEEK": Function(1, 1, _spark("WEEKOFYEAR")),
    "CARDINALITY": Function(1, 1, _spark("ARRAY_SIZE")),
    "LN": Function(1, 1, _logarithm("LN")),
    "LOG10": Function(1, 1, _logarithm("LOG10")),
    "LOG2": Function(1, 1, _logarithm("LOG2")),
    "LOG": Function(1, 1, _logarithm("LN")),
    "GREATEST": Function(2, _MANY, _null_if_any(_spark("GREATEST"))),
    "LEAST": Function(2, _MANY, _null_if_any(_spark("LEAST"))),
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
    "TO_TIMESTAMP_LTZ": Function(1, 2, _instant),
}


def of_substring(node: exp.Substring) -> exp.Expr:
    """Return ``SUBSTRING(s, 2, 3)``, ``SUBSTRING(s FROM 2 FOR 3)``."""
    start = node.args.get("start")
    if start is None:
        raise RefusedCallError("takes where it begins")
    return _substring(node.this, start, node.args.get("length"))


def of_position(node: exp.StrPosition) -> exp.Expr:
    """Return ``POSITION('a' IN s)``."""
    return _locate(node.args["substr"], node.this)


def of_whole(node: exp.Floor | exp.Ceil) -> exp.Expr:
    """Return ``FLOOR(x)``, ``FLOOR(ts TO DAY)``."""
    to = node.args.get("to")
    if node.args.get("decimals") is not None:
        raise RefusedCallError("takes one number")
    if to is None:
        return node
    unit = to.name.upper()
    if isinstance(node, exp.Ceil) or unit not in _FLOORS:
        raise RefusedCallError(f"of a time is FLOOR(time TO {', '.join(_FLOORS)})")
    return _spark("DATE_TRUNC")(exp.Literal.string(unit), node.this)


def of_part(node: exp.Extract) -> exp.Expr:
    """Return ``EXTRACT(DAY FROM ts)``; a second is a whole number."""
    unit = node.name.upper()
    if unit == "SECOND":
        return _spark("SECOND")(node.expression)
    if unit not in _PARTS:
        raise RefusedCallError(f"takes one of {', '.join((*_PARTS, 'SECOND'))}")
    return exp.Extract(this=exp.Var(this=unit), expression=node.expression)


#: By class: functions that have a grammar of their own.
SPECIAL: Mapping[type[exp.Expr], Callable[[Any], exp.Expr]] = {
    exp.Substring: of_substring,
    exp.StrPosition: of_position,
    exp.Floor: of_whole,
    exp.Ceil: of_whole,
    exp.Extract: of_part,
    exp.Trim: lambda node: node,
    exp.If: lambda node: node,
    exp.Case: lambda node: node,
    exp.Cast: lambda node: node,
    exp.TryCast: lambda node: node,
}
