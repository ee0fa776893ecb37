"""String functions."""

from __future__ import annotations

from collections.abc import Mapping
from string import ascii_lowercase, ascii_uppercase

from sqlglot import exp

from gpu_windows.sql.syntax.functions.building import (
    UNLIMITED,
    Function,
    UnsupportedCallError,
    integer_literal,
    need_choice,
    need_some_text,
    need_text,
    null_if_any,
    number,
    spark_function,
    spark_functions,
    string,
    template,
    text_literal,
    typed_call,
)

_CHARSETS = ("UTF-8", "UTF-16BE", "UTF-16LE")
_REGEX_CHARACTERS = set("\\^$.|?*+()[]{}")

_FROM_START = template(
    "CASE WHEN b >= 0 THEN SUBSTRING(a, b) WHEN LENGTH(a) < -b THEN '' ELSE SUBSTRING(a, b) END"
)
_PART = template(
    "CASE WHEN c < 0 THEN NULL WHEN b < 0 AND LENGTH(a) < -b THEN '' ELSE SUBSTRING(a, b, c) END"
)


def substring(of: exp.Expr, start: exp.Expr, length: exp.Expr | None = None) -> exp.Expr:
    """Return a part: NULL for a negative length, empty for a start before the first character."""
    begin = integer_literal(start, 0)
    if length is None:
        plain = begin is not None
        return spark_function("SUBSTRING")(of, start) if plain else _FROM_START(of, start)
    if begin is not None and integer_literal(length, 0) is not None:
        return spark_function("SUBSTRING")(of, start, length)
    return _PART(of, start, length)


def substring_node(node: exp.Substring) -> exp.Expr:
    """Return ``SUBSTRING(s, 2, 3)``, ``SUBSTRING(s FROM 2 FOR 3)``."""
    start = node.args.get("start")
    if start is None:
        raise UnsupportedCallError("takes a start")
    return substring(node.this, start, node.args.get("length"))


def position_node(node: exp.StrPosition) -> exp.Expr:
    """Return ``POSITION('a' IN s)``."""
    return spark_function("LOCATE")(node.args["substr"], node.this)


def trim_node(node: exp.Trim) -> exp.Expr:
    """Return ``TRIM(LEADING 'a' FROM s)``."""
    side = str(node.args.get("position") or "BOTH").upper()
    return exp.Trim(this=node.this, expression=node.expression, position=side)


def _trim(side: str) -> Function:
    """Return a trim; Spark's LTRIM and RTRIM have the characters first."""

    def build(of: exp.Expr, characters: exp.Expr | None = None) -> exp.Expr:
        return exp.Trim(this=of, expression=characters, position=side)

    return Function(1, 2, build)


def _pad(name: str) -> Function:
    """Return a function that is NULL for a negative length or an empty pad."""
    checked = template(f"CASE WHEN b < 0 OR c = '' THEN NULL ELSE {name}(a, b, c) END")

    def build(of: exp.Expr, length: exp.Expr, pad: exp.Expr) -> exp.Expr:
        if integer_literal(length, 0) is not None and text_literal(pad):
            return spark_function(name)(of, length, pad)
        return checked(of, length, pad)

    return Function(3, 3, build)


def _replace(of: exp.Expr, what: exp.Expr, by: exp.Expr) -> exp.Expr:
    need_some_text(what, "search string")
    return spark_function("REPLACE")(of, what, by)


def _translate(of: exp.Expr, letters: exp.Expr, others: exp.Expr) -> exp.Expr:
    need_text(letters, "string of letters")
    need_text(others, "string of replacements")
    return spark_function("TRANSLATE")(of, letters, others)


_LOCATE = template(
    "CASE WHEN a IS NULL OR b IS NULL OR c IS NULL THEN NULL WHEN a = '' THEN 1 "
    "ELSE LOCATE(a, b, GREATEST(c, 1)) END"
)


def _locate(what: exp.Expr, of: exp.Expr, start: exp.Expr | None = None) -> exp.Expr:
    if start is None:
        return spark_function("LOCATE")(what, of)
    begin = integer_literal(start)
    if begin is None or not text_literal(what):
        return _LOCATE(what, of, start)
    return spark_function("LOCATE")(what, of, number(max(begin, 1)))


_OVERLAY = (
    "CASE WHEN c <= 0 OR c > LENGTH(a) THEN a ELSE CONCAT(SUBSTRING(a, 1, c - 1), b, {rest}) END"
)
_OVERLAY_LENGTH = template(
    _OVERLAY.format(rest="CASE WHEN d > 0 THEN SUBSTRING(a, c + d) ELSE '' END")
)
_OVERLAY_WHOLE = template(
    _OVERLAY.format(rest="CASE WHEN LENGTH(b) > 0 THEN SUBSTRING(a, c + LENGTH(b)) ELSE '' END")
)


def overlay_node(node: exp.Overlay) -> exp.Expr:
    """Return ``OVERLAY(s PLACING 'x' FROM 2 FOR 3)``."""
    of, part, start = node.this, node.expression, node.args["from_"]
    length = node.args.get("for_")
    whole = [each for each in (of, part, start, length) if each is not None]
    make = _OVERLAY_WHOLE if length is None else _OVERLAY_LENGTH
    return null_if_any(make)(*whole)


def _split(of: exp.Expr, separator: exp.Expr) -> exp.Expr:
    need_text(separator, "separator")
    pattern = quote_pattern(need_some_text(separator, "separator"))
    return spark_function("SPLIT")(of, string(pattern))


def quote_pattern(text: str) -> str:
    """Return a regular expression that matches a text."""
    return "".join(f"\\{c}" if c in _REGEX_CHARACTERS else c for c in text)


def _split_index(of: exp.Expr, separator: exp.Expr, index: exp.Expr) -> exp.Expr:
    """Return a part from 0; of an empty text, there is none."""
    parts = _split(exp.Nullif(this=of, expression=string("")), separator)
    return spark_function("GET")(parts, index)


_ASCII = template(
    "CASE WHEN ASCII(a) < 128 THEN ASCII(a) WHEN ASCII(a) < 2048 THEN ASCII(a) DIV 64 - 64 "
    "WHEN ASCII(a) < 65536 THEN ASCII(a) DIV 4096 - 32 ELSE ASCII(a) DIV 262144 - 16 END"
)


def _elt(index: exp.Expr, *texts: exp.Expr) -> exp.Expr:
    ifs = [exp.If(this=number(at), true=each) for at, each in enumerate(texts, 1)]
    return exp.Case(this=index, ifs=ifs)


def _sha2(of: exp.Expr, bits: exp.Expr) -> exp.Expr:
    need_choice(integer_literal(bits), (224, 256, 384, 512), "a literal length")
    return spark_function("SHA2")(of, bits)


def _of_bits(bits: int) -> Function:
    return Function(1, 1, lambda of: spark_function("SHA2")(of, number(bits)))


def _with_charset(name: str) -> Function:
    def build(of: exp.Expr, charset: exp.Expr) -> exp.Expr:
        need_choice((text_literal(charset) or "").upper(), _CHARSETS, "a literal charset")
        return spark_function(name)(of, charset)

    return Function(2, 2, build)


def _is_all(letters: str) -> Function:
    """Return whether all characters are of a kind; false for NULL."""
    pattern = string(f"\\A{letters}+\\z")

    def build(of: exp.Expr) -> exp.Expr:
        found = spark_function("REGEXP_LIKE")(of, pattern.copy())
        return exp.Coalesce(this=found, expressions=[exp.false()])

    return Function(1, 1, build)


_LOWER, _UPPER = f"'{ascii_lowercase}'", f"'{ascii_uppercase}'"
_WORD = (
    f"CONCAT(TRANSLATE(LEFT(w, 1), {_LOWER}, {_UPPER}), "
    f"TRANSLATE(SUBSTRING(w, 2), {_UPPER}, {_LOWER}))"
)
#: Words of ASCII letters and digits with an upper case letter first.
_INITCAP = template(f"ARRAY_JOIN(TRANSFORM(SPLIT(a, '(?<=[^A-Za-z0-9])'), w -> {_WORD}), '')")
_LENGTH = Function(1, 1, lambda of: exp.Length(this=of))

#: The functions by name.
TEXTS: Mapping[str, Function] = {
    "UPPER": Function(1, 1, lambda of: exp.Upper(this=of)),
    "LOWER": Function(1, 1, lambda of: exp.Lower(this=of)),
    **dict.fromkeys(("CHAR_LENGTH", "CHARACTER_LENGTH", "LENGTH"), _LENGTH),
    "CONCAT": Function(1, UNLIMITED, lambda *e: exp.Concat(expressions=[*e], safe=True)),
    "CONCAT_WS": Function(2, UNLIMITED, spark_function("CONCAT_WS")),
    **spark_functions(1, "REVERSE MD5 SHA1 HEX BIN CHR URL_ENCODE UNHEX"),
    **spark_functions(2, "LEFT RIGHT REPEAT STARTSWITH ENDSWITH INSTR"),
    "INITCAP": Function(1, 1, _INITCAP, on_arrow="FLINK_INITCAP"),
    "SUBSTR": Function(2, 3, substring),
    "LPAD": _pad("LPAD"),
    "RPAD": _pad("RPAD"),
    "LTRIM": _trim("LEADING"),
    "RTRIM": _trim("TRAILING"),
    "BTRIM": _trim("BOTH"),
    "REPLACE": Function(3, 3, _replace),
    "TRANSLATE": Function(3, 3, _translate),
    "LOCATE": Function(2, 3, _locate),
    "SPLIT_INDEX": Function(3, 3, _split_index),
    "ASCII": Function(1, 1, _ASCII),
    "ELT": Function(2, UNLIMITED, _elt),
    "SHA2": Function(2, 2, _sha2),
    **{f"SHA{bits}": _of_bits(bits) for bits in (224, 256, 384, 512)},
    "TO_BASE64": Function(1, 1, spark_function("BASE64")),
    "FROM_BASE64": Function(1, 1, template("CAST(TO_BINARY(a, 'base64') AS STRING)")),
    "URL_DECODE": Function(1, 1, spark_function("TRY_URL_DECODE")),
    "ENCODE": _with_charset("ENCODE"),
    "DECODE": _with_charset("DECODE"),
    "JSON_STRING": Function(1, 1, lambda of: typed_call("JSON_STRING", of)),
    "IS_ALPHA": _is_all("\\p{L}"),
    "IS_DIGIT": _is_all("\\p{Nd}"),
}
