"""Expressions over strings: columns s and t, and an integer n."""

from __future__ import annotations

from collections.abc import Iterator

from tests.oracle.expressions.templates import fill

_UNARY = (
    "UPPER|LOWER|UCASE|LCASE|INITCAP|CHAR_LENGTH|CHARACTER_LENGTH|LENGTH|OCTET_LENGTH|ASCII|REVERSE|TRIM|LTRIM|RTRIM"
    "|BTRIM|MD5|SHA1|SHA224|SHA256|SHA384|SHA512|TO_BASE64|HEX|URL_ENCODE|URL_DECODE|CONCAT|IS_ALPHA"
    "|IS_DECIMAL|IS_DIGIT|UNHEX"
)


def texts() -> Iterator[str]:
    """Yield the expressions."""
    yield from fill("{f}(s)", f=_UNARY)
    yield from fill("{f}(s, {n})", f="SUBSTRING|SUBSTR", n="1|2|3|0|-1|-3|-100|100|n")
    yield from fill(
        "SUBSTRING(s, {start}, {length})", start="1|2|0|-2|-5|n", length="1|3|0|-1|100|n"
    )
    yield from fill("SUBSTRING(s FROM {a} FOR {b})", a="1|2", b="1|2")
    yield "SUBSTRING(s FROM 2)"
    yield from fill("{f}(s, {n})", f="LEFT|RIGHT|REPEAT", n="0|1|2|-1|20|n")
    yield from fill("{f}(s, {n}, {pad})", f="LPAD|RPAD", n="0|5|12|-1|n", pad="'*'|'xy'|'😀'|''|t")
    yield from fill("TRIM({p} {c} FROM s)", p="BOTH|LEADING|TRAILING", c="' '|'a'|'x'|'ab'|t")
    yield from fill("TRIM({p} FROM s)", p="BOTH|LEADING|TRAILING")
    yield from fill("{f}(s, {c})", f="BTRIM|LTRIM|RTRIM", c="' '|'a'|'ab c'|'12'|''|t")
    yield from fill("REPLACE(s, {a}, {b})", a="'a'|' '|''|'😀'|t", b="'Z'|''|'$1'|t")
    yield from fill("TRANSLATE(s, {a}, {b})", a="'ab'|'a😀'|''|t", b="'xy'|'x'|''")
    yield from fill("POSITION({a} IN s)", a="'a'|''|'😀'|'c'|t")
    yield from fill("LOCATE({a}, s)", a="'a'|''|'c'|t")
    yield from fill("LOCATE({a}, s, {n})", a="'a'|''|'b'|t", n="1|2|3|0|-1|100|n")
    yield from fill("INSTR(s, {a})", a="'a'|''|'c'|t")
    yield from fill("{f}(s, {a})", f="STARTSWITH|ENDSWITH", a="'a'|''|'d'|t")
    yield from fill(
        "OVERLAY(s PLACING {a} FROM {b} FOR {c})", a="'XX'|''|t", b="1|3|100|0|-1", c="1|3|0|100|-1"
    )
    yield from fill("OVERLAY(s PLACING {a} FROM {b})", a="'XX'|t", b="1|3|100|n")
    yield from fill("CONCAT_WS({a}, s, t)", a="'-'|''|t|CAST(NULL AS STRING)")
    yield from ("CONCAT(s, t)", "CONCAT(s, '-', t)", "s || t", "s || '-' || t", "CONCAT_WS('-', s)")
    yield from fill("SPLIT_INDEX(s, {a}, {n})", a="','|' '|'😀'|''|'ab'|t", n="0|1|2|-1|n")
    yield from fill("SPLIT(s, {a})", a="','|' '|''|'a'|t")
    yield from fill("CAST({x} AS {t})", x="s|n", t="VARCHAR(2)|CHAR(3)|VARCHAR(100)")
    yield from _patterns()
    yield from fill("s {o} t", o="=|<>|<|<=|>|>=|IS DISTINCT FROM|IS NOT DISTINCT FROM")
    yield from fill("s {o} 'b'", o="=|<|>=")
    yield from (
        "s BETWEEN 'a' AND 'i'",
        "s NOT BETWEEN 'a' AND 'i'",
        "s BETWEEN SYMMETRIC 'i' AND 'a'",
    )
    yield from ("s IN ('', '12', 'x')", "s NOT IN ('', '12', 'x')", "s IS NULL", "s IS NOT NULL")
    yield from (
        "COALESCE(s, t)",
        "IFNULL(t, 'none')",
        "NULLIF(s, t)",
        "NULLIF(s, '')",
        "IF(s = t, 'same', s)",
    )
    yield from (
        "CASE WHEN s = '' THEN 'empty' WHEN n > 1 THEN s ELSE t END",
        "GREATEST(s, t)",
        "LEAST(s, t)",
    )
    yield from fill("CHR({n})", n="n|65|97|233|353|0|-1|256|128512")
    yield from (
        "CHAR_LENGTH(s) + n",
        "UPPER(SUBSTRING(s, 2, 3))",
        "REVERSE(LOWER(s))",
        "TRIM(s) = s",
    )
    yield from fill("ELT({n}, s, t, 'c')", n="1|2|3|0|4|n")
    yield from (
        "ENCODE(s, 'UTF-8')",
        "ENCODE(s, 'UTF-16BE')",
        "DECODE(ENCODE(s, 'UTF-8'), 'UTF-8')",
    )
    yield from ("FROM_BASE64(TO_BASE64(s))", "FROM_BASE64('aGk=')", "FROM_BASE64(s)")
    yield from fill("SHA2(s, {n})", n="224|256|384|512|1|n")
    yield from fill(
        "PARSE_URL('https://me:pw@a.b:80/c/d.html?q=1&r=%20x#frag', '{p}')",
        p="HOST|PATH|QUERY|REF|PROTOCOL|FILE|AUTHORITY|USERINFO|PORT",
    )
    yield from fill("PARSE_URL('http://a.b/c?q=1&r=2', 'QUERY', '{k}')", k="q|r|x")
    yield from (
        "PARSE_URL(s, 'HOST')",
        "STR_TO_MAP(s)",
        "STR_TO_MAP('a=1,b=2')",
        "STR_TO_MAP('a:1;b', ';', ':')",
    )
    yield from fill("BIN({n})", n="n|5|-5")


def _patterns() -> Iterator[str]:
    yield from fill(
        "s LIKE '{p}'",
        p=[
            "%",
            "",
            "a%",
            "%c",
            "%a%",
            "_",
            "___",
            "a_b%",
            "id=__ d",
            "%\\%",
            "\\",
            "A%",
            "%ö%",
            "a.b",
            "%_\\$^.*",
        ],
    )
    yield from (
        "s NOT LIKE '%a%'",
        "s LIKE t",
        "s LIKE '!%%' ESCAPE '!'",
        "s LIKE '%!_%' ESCAPE '!'",
        "s LIKE 'a#%b' ESCAPE '#'",
    )
    yield from fill(
        "s SIMILAR TO '{p}'",
        p=["%", "a%", "id=[0-9]+ d", "(a|i)%", "[a-c,]*", "_{2}", "%(b|c)", "12"],
    )
    yield "s NOT SIMILAR TO '[a-c,]*'"
    patterns = [
        "a",
        "[0-9]+",
        "^a",
        "d$",
        "(a|b)c",
        "\\d+",
        "\\w+",
        "\\s",
        ".",
        "(",
        "",
        "[a-z]{2}",
        "ö",
        "😀",
        "(?i)abc",
        "a.*c",
        "\\bb",
        "(\\d)(\\d)",
        "x*",
        "\\p{L}+",
    ]
    yield from fill("REGEXP(s, '{p}')", p=patterns)
    yield from fill("REGEXP_REPLACE(s, '{p}', '{r}')", p=patterns, r=["*"])
    yield from fill(
        "REGEXP_REPLACE(s, '{p}', '{r}')",
        p=["a", "(\\d)(\\d)", "b"],
        r=["", "$1", "\\", "<$0>", "é"],
    )
    yield from fill("REGEXP_EXTRACT(s, '{p}')", p=patterns)
    yield from fill(
        "REGEXP_EXTRACT(s, '{p}', {n})",
        p=["(\\d)(\\d)", "id=([0-9]+)", "(a)?b", "([a-c]),"],
        n="0|1|2|-1|n",
    )
    yield from fill("REGEXP_COUNT(s, '{p}')", p=patterns)
    yield from fill("REGEXP_INSTR(s, '{p}')", p=patterns)
    yield from fill("REGEXP_SUBSTR(s, '{p}')", p=patterns)
    yield from fill("REGEXP_EXTRACT_ALL(s, '{p}')", p=["\\d", "([a-c])", "x*"])
    yield from fill("REGEXP_EXTRACT_ALL(s, '{p}', {n})", p=["(\\d)(\\d)", "([a-c]),"], n="0|1|2")
    yield from ("REGEXP(s, t)", "REGEXP_REPLACE(s, t, 'z')", "REGEXP_EXTRACT(s, t)")
