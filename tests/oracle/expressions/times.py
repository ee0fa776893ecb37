"""Expressions over times: ts TIMESTAMP_LTZ(3), tn TIMESTAMP(3), dt DATE, text x, seconds e."""

from __future__ import annotations

from collections.abc import Iterator

from tests.oracle.expressions.templates import fill

_UNITS = (
    "YEAR|QUARTER|MONTH|WEEK|DAY|DOY|DOW|ISODOW|ISOYEAR|HOUR|MINUTE|SECOND|MILLISECOND"
    "|MICROSECOND|NANOSECOND|EPOCH|DECADE|CENTURY|MILLENNIUM"
)
_SHORT = "YEAR|QUARTER|MONTH|WEEK|DAYOFYEAR|DAYOFMONTH|DAYOFWEEK|HOUR|MINUTE|SECOND"
_FORMATS = [
    "yyyy-MM-dd",
    "yyyy-MM-dd HH:mm:ss",
    "yyyy-MM-dd HH:mm:ss.SSS",
    "HH",
    "yyyyMMddHH",
    "yy",
    "EEE",
    "EEEE",
    "MMM",
    "MMMM",
    "a",
    "hh:mm a",
    "d/M/yyyy H:m:s",
    "yyyy-MM-dd''T''HH:mm",
    "SSSSSS",
    "D",
    "uuuu-MM-dd",
    "S",
    "w",
    "u",
    "e",
    "Q",
    "k",
    "K",
    "yyyy年MM月dd日",
    "z",
    "XXX",
    "''day'' dd",
    "yyyy",
    "MM",
    "dd",
    "mm",
    "ss",
    "H",
    "y",
    "",
]
_PARSES = [
    "yyyy-MM-dd HH:mm:ss",
    "yyyy-MM-dd",
    "dd/MM/yyyy",
    "yyyy-MM-dd HH:mm:ss.SSS",
    "yyyy-MM-dd''T''HH:mm:ss",
    "yyyy",
    "HH:mm",
]
_TIMES = "ts|tn|dt"


def times() -> Iterator[str]:
    """Yield the expressions."""
    yield from fill("EXTRACT({u} FROM {x})", u=_UNITS, x=_TIMES)
    yield from fill("{u}({x})", u=_SHORT, x=_TIMES)
    yield from fill(
        "{f}({x} TO {u})",
        f="FLOOR|CEIL",
        x=_TIMES,
        u="YEAR|QUARTER|MONTH|WEEK|DAY|HOUR|MINUTE|SECOND|MILLISECOND",
    )
    yield from fill("DATE_FORMAT({x}, '{f}')", x="ts|tn", f=_FORMATS)
    yield from fill("DATE_FORMAT({x}, '{f}')", x="x|dt", f=["yyyy-MM-dd", "HH:mm:ss", "SSS"])
    yield from fill(
        "TIMESTAMPDIFF({u}, {a}, {b})",
        u="SECOND|MINUTE|HOUR|DAY|WEEK|MONTH|QUARTER|YEAR",
        a="ts|tn|dt",
        b=["TIMESTAMP '2024-03-01 00:00:00'", "DATE '2023-03-31'"],
    )
    yield from fill(
        "TIMESTAMPDIFF({u}, {a}, {b})",
        u="SECOND|DAY|MONTH|YEAR",
        a="TO_TIMESTAMP_LTZ(1709298895000, 3)|TO_TIMESTAMP('2024-02-29 12:00:00')",
        b="ts|tn|dt",
    )
    yield from fill(
        "TIMESTAMPADD({u}, {n}, {x})",
        u="SECOND|MINUTE|HOUR|DAY|WEEK|MONTH|QUARTER|YEAR",
        n="1|-1|13",
        x=_TIMES,
    )
    yield from fill("TIMESTAMPADD({u}, CAST(e AS INT), DATE '2024-01-31')", u="SECOND|DAY")
    yield from fill(
        "{x} {o} INTERVAL {i}",
        x=_TIMES,
        o="+|-",
        i=[
            "'1' DAY",
            "'90' MINUTE",
            "'1' MONTH",
            "'1' YEAR",
            "'1.5' SECOND",
            "'1 02:03:04' DAY TO SECOND",
            "'1-2' YEAR TO MONTH",
        ],
    )
    yield from fill("TO_DATE(x{f})", f=["", *(f", '{each}'" for each in _PARSES)])
    yield from fill("TO_TIMESTAMP(x{f})", f=["", *(f", '{each}'" for each in _PARSES)])
    yield from fill("UNIX_TIMESTAMP(x{f})", f=["", *(f", '{each}'" for each in _PARSES)])
    yield from fill(
        "FROM_UNIXTIME(e{f})", f=["", ", 'yyyy-MM-dd'", ", 'HH:mm'", ", 'yyyy-MM-dd HH:mm:ss.SSS'"]
    )
    yield from fill("TO_TIMESTAMP_LTZ(e{p})", p=["", ", 0", ", 3", ", 6", ", 9"])
    yield from fill(
        "TO_TIMESTAMP_LTZ(x{f})", f=["", ", 'yyyy-MM-dd'", ", 'yyyy-MM-dd HH:mm:ss', 'Asia/Tokyo'"]
    )
    yield from (
        "TO_TIMESTAMP_LTZ(CAST(e AS DOUBLE), 3)",
        "TO_TIMESTAMP_LTZ(CAST(e AS DECIMAL(20, 2)), 3)",
    )
    yield from fill(
        "CONVERT_TZ(x, '{a}', '{b}')",
        a="UTC|America/New_York",
        b="Asia/Kathmandu|UTC|nowhere|GMT+05:30",
    )
    yield from fill(
        "CAST({x} AS {t})",
        x="ts|tn|dt",
        t="STRING|DATE|TIMESTAMP(3)|TIMESTAMP(0)|TIMESTAMP_LTZ(3)|TIME|BIGINT|TIMESTAMP|VARCHAR(10)",
    )
    yield from fill(
        "CAST(x AS {t})", t="DATE|TIMESTAMP(3)|TIMESTAMP(0)|TIMESTAMP_LTZ(3)|TIME|TIMESTAMP"
    )
    yield from fill("TRY_CAST(x AS {t})", t="DATE|TIMESTAMP(3)|TIMESTAMP_LTZ(3)|TIMESTAMP")
    yield from fill(
        "CAST({x} AS STRING)",
        x=[
            "CAST(ts AS DATE)",
            "CAST(tn AS TIMESTAMP(0))",
            "FLOOR(ts TO HOUR)",
            "TO_TIMESTAMP_LTZ(e, 0)",
            "TIMESTAMP '2024-02-29 12:00:00'",
            "CAST(ts AS TIMESTAMP(6))",
            "CAST(dt AS TIMESTAMP(3))",
        ],
    )
    yield from fill(
        "CAST({x} AS STRING)",
        x=[
            "CAST(ts AS TIME)",
            "tn + INTERVAL '1' DAY",
            "ts - INTERVAL '1' HOUR",
            "TIMESTAMPADD(DAY, 1, ts)",
            "TO_TIMESTAMP(x)",
            "TO_DATE(x)",
            "CEIL(tn TO DAY)",
            "FLOOR(tn TO HOUR)",
            "COALESCE(ts, TO_TIMESTAMP_LTZ(0, 3))",
            "CAST(ts AS TIMESTAMP(3))",
            "CAST(tn AS TIMESTAMP_LTZ(3))",
            "CAST(tn AS TIMESTAMP(0))",
            "CAST(ts AS TIMESTAMP)",
            "CAST(x AS TIMESTAMP(3))",
            "TIMESTAMP '2024-02-29 12:00:00.5'",
            "dt + INTERVAL '1' DAY",
            "FLOOR(dt TO MONTH)",
            "IF(dt > DATE '2000-01-01', tn, tn + INTERVAL '1' HOUR)",
        ],
    )
    yield from fill("CAST({x} AS {t})", x="ts|tn|dt", t="VARCHAR(19)|VARCHAR|CHAR(25)|VARCHAR(4)")
    yield "CONCAT('at ', CAST(ts AS STRING))"
    yield from fill(
        "{x} {o} {y}",
        x="ts|tn|dt",
        o="=|<|>=",
        y=["TIMESTAMP '2024-02-29 13:14:56.789'", "DATE '2024-02-29'", "'2024-02-29 13:14:56.789'"],
    )
    yield from (
        "ts = tn",
        "ts < tn",
        "dt = tn",
        "dt < ts",
        "ts IS NULL",
        "dt BETWEEN DATE '1970-01-01' AND DATE '2024-02-29'",
        "tn BETWEEN TIMESTAMP '1970-01-01 00:00:00' AND TIMESTAMP '2024-12-31 00:00:00'",
    )
    yield from (
        "DATE '2024-02-29'",
        "TIMESTAMP '2024-02-29 12:34:56.789'",
        "TIMESTAMP '2024-03-10 02:30:00'",
        "TIME '12:34:56'",
        "INTERVAL '1' DAY",
    )
    yield from (
        "GREATEST(tn, TIMESTAMP '2000-01-01 00:00:00')",
        "LEAST(dt, DATE '2000-01-01')",
        "COALESCE(ts, TO_TIMESTAMP_LTZ(0, 3))",
        "IF(dt > DATE '2000-01-01', dt, DATE '1999-12-31')",
    )
    yield from (
        "(ts - INTERVAL '1' DAY) + INTERVAL '2' HOUR",
        "EXTRACT(DAY FROM ts + INTERVAL '1' DAY)",
        "HOUR(ts) / 2",
        "DATE_FORMAT(FLOOR(ts TO HOUR), 'HH:mm')",
    )
    yield from (
        "DATE_FORMAT(TO_TIMESTAMP_LTZ(e, 0), 'yyyy-MM-dd HH:mm:ss')",
        "DATE_FORMAT(ts, x)",
        "UNIX_TIMESTAMP(DATE_FORMAT(ts, 'yyyy-MM-dd HH:mm:ss'))",
        "TO_DATE(DATE_FORMAT(ts, 'yyyy-MM-dd'))",
    )
