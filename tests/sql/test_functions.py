"""Functions and operators give what a recorded Flink gave, or are refused with their place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import ExpressionError, SqlError
from gpu_windows.sql.syntax.regex_groups import groups_in_every_match
from tests.sql.recorded import ELSEWISE, IN, TIMES, accepted, differs, is_odd, refusal, rows, values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WAITS = gw.WatermarkStrategy.for_monotonous_timestamps()
ZONE = "spark.sql.session.timeZone"
#: Of the recorded expressions so many at least are accepted.
ON_ARROW, ON_SPARK = 140, 300


def _timed(table: pa.Table | DataFrame) -> gw.typing.TimedStream:
    return gw.stream(table).event_time("at", WAITS)


def test_over_arrow_tables_expressions_are_flinks_or_refused() -> None:
    of, wanted = _timed(rows("UTC")), values()["UTC"]
    given = 0
    for expression, flinks in wanted.items():
        refused = refusal(of, f"{expression} AS x")
        if refused is not None:
            assert refused.line is not None, expression
            continue
        given += 1
        if expression in ELSEWISE:
            continue
        try:
            found = gw.sql(f"SELECT i, {expression} AS x {IN}", t=of).result().sort_by("i")
        except ExpressionError as error:
            pytest.fail(f"{expression}: {error}")
        ours = found["x"].to_pylist()
        wrong = [
            row
            for row, pair in enumerate(zip(ours, flinks, strict=True))
            if differs(*pair) and not is_odd("UTC", expression, row)
        ]
        assert not wrong, f"{expression}: {ours}, in Flink {flinks}"
    assert given >= ON_ARROW


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("zone", "every"),
    [("UTC", 4), *(pytest.param(zone, 1, marks=pytest.mark.slow) for zone in TIMES)],
)
def test_over_dataframes_expressions_are_flinks_or_refused(
    spark: SparkSession, zone: str, every: int
) -> None:
    recorded = [(each, given) for each, given in values()[zone].items() if each not in ELSEWISE]
    wanted = dict(recorded[::every])
    spark.conf.set(ZONE, zone)
    try:
        of = _timed(spark.createDataFrame(rows(zone)))
        here = accepted(of, list(wanted))
        items = ", ".join(f"{each} AS x{place}" for place, each in enumerate(here))
        found: DataFrame = gw.sql(f"SELECT i, {items} {IN}", t=of).result()
        table = found.toArrow().sort_by("i")
    finally:
        spark.conf.set(ZONE, "UTC")
    wrong = {
        expression: (ours, wanted[expression])
        for place, expression in enumerate(here)
        for ours in [table[f"x{place}"].to_pylist()]
        if any(
            differs(*pair) and not is_odd(zone, expression, row)
            for row, pair in enumerate(zip(ours, wanted[expression], strict=True))
        )
    }
    assert not wrong
    assert len(here) >= (ON_SPARK if zone == "UTC" else 15) // every


@pytest.mark.parametrize(
    ("pattern", "groups"),
    [
        ("id=([0-9]+)", [True, True]),
        ("(a|b)c", [True, True]),
        ("(a)|(b)", [True, False, False]),
        ("(a)?(b)", [True, False, True]),
        ("(a(b))*(c)", [True, False, False, True]),
        ("((a)|b)(c){2}", [True, True, False, True]),
        (r"(?:a|b)(?<n>c)(?=d)\((e)", [True, True, True]),
        (r"[(|](a)\Q(\E(b){0,2}", [True, True, False]),
        ("a(?!(b))(?<!(c)d)(e)", [True, False, False, True]),
        ("(?=(a))(?<=(b))(c)", [True, True, True, True]),
        ("[](](a)[^]|](b)", [True, True, True]),
        ("[a[](]](b)", [True, True]),
    ],
)
def test_groups_that_a_match_may_lack_are_known(pattern: str, groups: list[bool]) -> None:
    assert groups_in_every_match(pattern) == groups


#: What is refused, with # before its place, and words of the rule.
REFUSED = {
    "a misspelled function": ("#UPER(s)", "did you mean UPPER?"),
    "a function of one's own": ("1 + #weightedAvg(n, n)", "using with_columns.*got weightedAvg"),
    "too many arguments": ("#UPPER(s, s)", "UPPER takes 1 arguments, got 2"),
    "a place that is none": ("#arr[0]", "an element takes an index from 1"),
    "a place from the end": ("#arr[-1]", "an element takes an index from 1"),
    "a key without a value": ("#MAP['a', n, 'b']", "keys and values in turn"),
    "the time of day": ("#LOCALTIMESTAMP", "when it is computed"),
    "now": ("#CURRENT_TIMESTAMP", "when it is computed"),
    "the day": ("#CURRENT_DATE", "when it is computed"),
    "chance": ("#RAND()", "when it is computed"),
    "the time of processing": ("#PROCTIME()", "the time at which rows arrive"),
    "a list as a text": ("#CAST(arr AS STRING)", "got CAST"),
    "a part of a day": ("#EXTRACT(HOUR FROM CAST(ts AS DATE))", r"got EXTRACT\(HOUR FROM CAST"),
    "a path": ("#JSON_VALUE(s, 'a' DEFAULT 'x' ON EMPTY)", r"got JSON_VALUE\(s, 'a' DEFAULT 'x'"),
    "a time of day": ("#CAST(ts AS TIME)", "the type TIME is not covered"),
    "a month": ("ts + INTERVAL #'1' MONTH", "no fixed length"),
    "a number as a time": ("#CAST(n AS TIMESTAMP_LTZ(3))", "TO_TIMESTAMP_LTZ"),
    "a query": ("EXISTS (SELECT #1)", "join it"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_meaning_here_is_refused_at_its_place(case: str) -> None:
    text, words = REFUSED[case]
    statement = f"SELECT {text} AS x {IN}"
    with pytest.raises(SqlError, match=words) as caught:
        gw.sql(statement.replace("#", ""), t=_timed(rows("UTC")))
    assert (caught.value.line, caught.value.position) == (1, statement.index("#") + 1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("REGEXP_EXTRACT(s, '(a)?', 1)", "REGEXP_EXTRACT takes a group that every match has"),
        ("REGEXP_EXTRACT(s, 'a', 1)", "one of the groups of its pattern: 0 to 0"),
        ("REGEXP_EXTRACT(s, s)", "literal"),
        ("TRANSLATE(s, s, 'x')", "TRANSLATE takes a literal string of letters"),
        ("REPLACE(s, '', 'x')", "not empty"),
        ("SPLIT_INDEX(s, '', 1)", "a literal separator that is not empty"),
        ("s SIMILAR TO s", "SIMILAR TO takes a literal pattern"),
        ("DATE_FORMAT(ts, 'z')", "a literal format"),
        ("CEIL(ts TO WEEK)", "CEIL TO WEEK is not covered"),
        ("EXTRACT(NANOSECOND FROM ts)", "EXTRACT takes one of YEAR"),
        ("TO_TIMESTAMP_LTZ(b, 9)", "0 for seconds, 3 for"),
    ],
)
def test_arguments_that_mean_something_else_are_refused(
    spark: SparkSession, text: str, words: str
) -> None:
    of = _timed(spark.createDataFrame(rows("UTC")))
    with pytest.raises(SqlError, match=words) as caught:
        gw.sql(f"SELECT {text} AS x {IN}", t=of)
    assert (caught.value.line, caught.value.position) == (1, 8)


def test_integers_are_divided_without_a_remainder_in_aggregates_too() -> None:
    of = _timed(rows("UTC"))
    text = "SELECT SUM(b) / COUNT(*) AS m, SUM(b + 6) / 4 AS q, SUM(d) / 2 AS h "
    found = gw.sql(f"{text}{IN} WHERE n / 2 > 2 GROUP BY window_start, window_end", t=of).result()
    assert found.to_pylist() == [{"m": 7, "q": 3, "h": 1.25}]


def test_a_text_of_any_length_is_a_string() -> None:
    text = f"SELECT s, CAST(s AS VARCHAR(2147483647)) AS v, CAST(s AS VARCHAR) AS w {IN}"
    found = gw.sql(text, t=_timed(rows("UTC"))).result()
    assert found["v"].to_pylist() == found["w"].to_pylist() == found["s"].to_pylist()


def test_a_day_of_a_zone_is_refused_over_arrow_tables() -> None:
    table = rows("UTC")
    moved = table["ts"].cast(pa.timestamp("us", "America/New_York"))
    of = _timed(table.set_column(table.schema.get_field_index("ts"), "ts", moved))
    with pytest.raises(SqlError, match="dates are in UTC"):
        gw.sql(f"SELECT CAST(ts AS DATE) AS x {IN}", t=of)
