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
        *_json_defaults(),
        "JSON_STRING(j)",
        "JSON_QUOTE(j)",
        "JSON_UNQUOTE(j)",
    )


def _json_defaults() -> Iterator[str]:
    """Yield JSON functions with what is given for a path without a value."""
    paths = ["$.d", "$.a", "lax $.x", "lax $.b", "lax $.d", "lax $.a"]
    yield from fill(
        "JSON_VALUE(j, '{p}' {b})",
        p=paths,
        b=[
            "DEFAULT 'none' ON EMPTY",
            "DEFAULT 'bad' ON ERROR",
            "DEFAULT 'none' ON EMPTY DEFAULT 'bad' ON ERROR",
            "ERROR ON EMPTY",
        ],
    )
    yield from fill(
        "JSON_VALUE(j, '{p}' RETURNING {t} ON ERROR)",
        p=["lax $.a", "lax $.x"],
        t=["INT DEFAULT 5 ON EMPTY DEFAULT 6", "DOUBLE DEFAULT 5.5 ON EMPTY DEFAULT 6.5"],
    )
    yield from fill(
        "JSON_QUERY(j, '{p}' {w})",
        p=["lax $.b", "lax $.a", "lax $.x", "$.d", "lax $.d"],
        w=[
            "EMPTY ARRAY ON EMPTY",
            "EMPTY OBJECT ON EMPTY",
            "EMPTY ARRAY ON ERROR",
            "EMPTY OBJECT ON ERROR",
            "EMPTY ARRAY ON EMPTY EMPTY OBJECT ON ERROR",
            "WITH UNCONDITIONAL ARRAY WRAPPER",
            "WITH CONDITIONAL ARRAY WRAPPER",
        ],
    )
    yield from fill(
        "JSON_EXISTS(j, '{p}' {b} ON ERROR)",
        p=["lax $.x", "lax $.a", "lax $.d", "$.d"],
        b="TRUE|FALSE|UNKNOWN|ERROR",
    )


def _made_json() -> Iterator[str]:
    """Yield documents made of values, over the table of casts."""
    yield from fill("JSON_OBJECT('a' VALUE {x})", x="s|ok|n|d|m|b")
    yield from fill(
        "JSON_OBJECT({x})",
        x=[
            "KEY 'a' VALUE s, KEY 'b' VALUE n",
            "'a' VALUE s, 'b' VALUE n NULL ON NULL",
            "'a' VALUE s, 'b' VALUE n ABSENT ON NULL",
            "'a' VALUE JSON_OBJECT('b' VALUE n)",
            "'a' VALUE JSON_ARRAY(n, s)",
            "'a\"b' VALUE 'x'",
            "'a' VALUE UPPER(s)",
            "'a' VALUE NULL",
            "'t' VALUE TIMESTAMP '2024-02-29 12:00:00'",
            "'d' VALUE DATE '2024-02-29'",
            "",
        ],
    )
    yield from fill(
        "JSON_ARRAY({x})",
        x=[
            "n, s, ok",
            "d, m",
            "n NULL ON NULL",
            "s ABSENT ON NULL",
            "JSON_OBJECT('a' VALUE n)",
            "",
        ],
    )
    yield from fill("JSON_STRING({x})", x="n|ok|m|d")


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
    yield from fill(
        "CAST({x} AS STRING)",
        x=["m * m", "m / m", "d / 7", "d * 3", "CAST(b AS DOUBLE)", "CAST(n AS FLOAT)", "m / 3"],
    )
    yield from fill("CAST(CAST(d AS FLOAT) AS {t})", t=["DECIMAL(10, 2)", "VARCHAR(4)"])
    yield from fill("CAST(d AS {t})", t=["DECIMAL(20, 8)", "DECIMAL(38, 10)"])
    yield from _made_json()
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
    yield from (
        "MAP['a', n, 'b', 2]",
        "CARDINALITY(MAP['a', n, 'b', 2])",
        "MAP['x', k, 'y', 'z']['y']",
        "ARRAY_CONTAINS(ARRAY['a', k], 'x')",
        "ARRAY[k, 'x'][2]",
        "ARRAY[1, 2.5, n]",
        "ARRAY_SORT(arr, FALSE)",
        "ARRAY_SORT(arr, TRUE, FALSE)",
        "CAST(ROW(n, k) AS ROW<a INT, b STRING>).a",
        "words[n]",
        "arr[n + 1]",
        "arr[CARDINALITY(arr)]",
    )
    yield from ("arr[1] + n", "arr[1] / 2", "mp['a'] / 2")


def urls() -> Iterator[str]:
    """Yield parts of URLs."""
    yield from fill(
        "PARSE_URL(u, '{p}')", p="PROTOCOL|HOST|PATH|QUERY|REF|FILE|AUTHORITY|USERINFO|host|PORT"
    )
    yield from (
        "PARSE_URL(u, 'QUERY', 'q')",
        "PARSE_URL(u, 'QUERY', q)",
        "PARSE_URL(u, 'HOST', 'q')",
    )
    yield from fill("{f}(u)", f="URL_ENCODE|URL_DECODE")
