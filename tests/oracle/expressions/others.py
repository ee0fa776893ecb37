"""Expressions over JSON, casts, and nested values."""

from __future__ import annotations

from collections.abc import Iterator

from tests.oracle.expressions.templates import fill

_PATHS = [
    "$",
    "$.a",
    "$.b",
    "$.b.c",
    "$.b.c[0]",
    "$.b.c[2]",
    "$.b.c[9]",
    "$.e",
    "$.f",
    "$.d",
    "$.x",
    "$[0]",
    "$[2].a",
    "$.*",
    "$..a",
    "lax $.a",
    "strict $.a",
    "strict $.x",
    "$[''a'']",
    "$.b.c[*]",
    "a",
    "",
    "$.g.h",
]


def json_texts() -> Iterator[str]:
    """Yield expressions over column j."""
    yield from fill("JSON_VALUE(j, '{p}')", p=_PATHS)
    yield from fill("JSON_QUERY(j, '{p}')", p=_PATHS)
    yield from fill("JSON_EXISTS(j, '{p}')", p=_PATHS)
    yield from fill(
        "JSON_VALUE(j, '$.{p}' RETURNING {t})",
        p="a|f|e",
        t="INT|BIGINT|DOUBLE|BOOLEAN|STRING|INTEGER",
    )
    yield from fill(
        "JSON_VALUE(j, '{p}' {b})",
        p=["$.x", "$.b", "strict $.x"],
        b=[
            "DEFAULT 'none' ON EMPTY",
            "DEFAULT 'bad' ON ERROR",
            "NULL ON EMPTY NULL ON ERROR",
            "ERROR ON ERROR",
        ],
    )
    yield from fill(
        "JSON_QUERY(j, '$.{p}' {w})",
        p="a|b|e|x",
        w=[
            "WITH WRAPPER",
            "WITH CONDITIONAL WRAPPER",
            "WITHOUT WRAPPER",
            "EMPTY ARRAY ON EMPTY",
            "NULL ON ERROR",
        ],
    )
    yield from fill(
        "JSON_EXISTS(j, '{p}' {b} ON ERROR)", p=["$.a", "strict $.x"], b="TRUE|FALSE|UNKNOWN"
    )
    yield from fill(
        "j IS {n}JSON{k}", n=["", "NOT "], k=["", " VALUE", " OBJECT", " ARRAY", " SCALAR"]
    )
    yield from (
        "CAST(JSON_VALUE(j, '$.a') AS DOUBLE)",
        "TRY_CAST(JSON_VALUE(j, '$.a') AS INT)",
        "JSON_STRING(j)",
        "JSON_QUOTE(j)",
        "JSON_UNQUOTE(j)",
    )


def conversions() -> Iterator[str]:
    """Yield casts."""
    types = (
        "STRING|BOOLEAN|TINYINT|SMALLINT|INT|BIGINT|FLOAT|DOUBLE|DECIMAL(10, 2)|DECIMAL(4, 1)"
        "|DECIMAL|VARCHAR(3)|CHAR(5)|BYTES"
    )
    yield from fill("{c}({x} AS {t})", c="CAST|TRY_CAST", x="s|ok|n|d|m|b", t=types)
    yield from fill(
        "CAST({x} AS STRING)",
        x=[
            "CAST(d AS FLOAT)",
            "n > 0",
            "CAST(m AS DECIMAL(20, 5))",
            "1.50",
            "1e0",
            "ARRAY[n, 1]",
            "NULL",
        ],
    )
    yield from fill("CAST(s AS {t})", t=["DATE", "TIMESTAMP(3)", "DECIMAL(5, 0)"])
    yield from (
        "CAST(CAST(s AS BYTES) AS STRING)",
        "CAST(CAST(b AS TINYINT) AS INT)",
        "CAST(n AS STRING) || s",
        "n || s",
        "CONCAT(n, s)",
        "n = s",
        "s > n",
        "n + s",
        "CAST(CAST(n AS STRING) AS INT)",
    )
    yield from (
        "ok AND n > 0",
        "ok OR n > 0",
        "NOT ok",
        "ok = TRUE",
        "ok IS TRUE",
        "ok IS NOT FALSE",
        "ok <> (n > 0)",
        "IF(ok, s, 'no')",
        "COALESCE(ok, FALSE)",
        "CASE WHEN ok THEN n END",
        "GREATEST(ok, FALSE)",
    )
    yield from fill(
        "TYPEOF({x})",
        x=["s", "ok", "n", "d", "m", "b", "n / 2", "n / 2.0", "m * m", "m / m", "'abc'", "1.5"],
    )


def nested_values() -> Iterator[str]:
    """Yield expressions over arrays and maps."""
    yield from fill("arr[{n}]", n="1|2|3|9|n")
    yield from fill("words[{n}]", n="1|2")
    yield from fill("mp[{k}]", k="'a'|'x'|''|k")
    yield from fill("CARDINALITY({x})", x="arr|words|mp")
    yield from fill(
        "{f}(arr)", f="ARRAY_DISTINCT|ARRAY_REVERSE|ARRAY_MAX|ARRAY_MIN|ARRAY_SORT|ELEMENT"
    )
    yield from fill(
        "{f}(words)", f="ARRAY_DISTINCT|ARRAY_REVERSE|ARRAY_MAX|ARRAY_MIN|ARRAY_SORT|ELEMENT"
    )
    yield from fill("{f}(mp)", f="MAP_KEYS|MAP_VALUES|MAP_ENTRIES")
    yield from fill("ARRAY_CONTAINS(arr, {x})", x="1|5|n|NULL|CAST(NULL AS INT)")
    yield from fill("ARRAY_CONTAINS(words, {x})", x="'a'|k")
    yield from fill("ARRAY_POSITION(arr, {x})", x="1|5|9|n")
    yield from fill("ARRAY_POSITION(words, {x})", x="'a'|k")
    yield from fill("ARRAY_REMOVE(arr, {x})", x="5|n")
    yield from fill("ARRAY_APPEND(arr, {x})", x="5|n")
    yield from fill("ARRAY_PREPEND(arr, {x})", x="5|n")
    yield from fill(
        "{f}(arr, {x})",
        f="ARRAY_UNION|ARRAY_CONCAT|ARRAY_EXCEPT|ARRAY_INTERSECT",
        x="arr|ARRAY[1, 5, 7]",
    )
    yield from fill("ARRAY_SLICE(arr, {x})", x=["1", "2", "1, 2", "-2", "-2, -1", "0", "5, 9"])
    yield from fill("ARRAY_JOIN(words, {x})", x=["','", "',', '?'", "''", "k"])
    yield from (
        "ARRAY[1, 2, n]",
        "ARRAY[n]",
        "ARRAY[k, 'x']",
        "MAP['a', n]",
        "MAP['a', n]['a']",
        "MAP[k, n]",
        "ROW(n, k)",
        "ARRAY[n, 1][1]",
        "CARDINALITY(ARRAY[1, 2])",
        "MAP_FROM_ARRAYS(words, words)",
        "MAP_UNION(mp, mp)",
        "ELEMENT(ARRAY[n])",
        "arr IS NULL",
        "arr = arr",
        "IF(n > 1, arr, ARRAY[0])",
        "COALESCE(arr, ARRAY[0])",
        "CAST(arr AS STRING)",
        "CAST(mp AS STRING)",
    )
    yield from ("arr[1] + n", "arr[1] / 2", "mp['a'] / 2")
