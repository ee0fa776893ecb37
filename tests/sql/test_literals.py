"""Texts and names that are written out: Flink's, on both runners and under Spark's settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import SqlError
from gpu_windows.sql.syntax.parse import parse_statement
from tests.sql.texts import stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

IN = "FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR))"
SETTING = "spark.sql.parser.escapedStringLiterals"

#: A literal of Flink's, and the text that it is.
LITERALS = {
    r"'a\tb\d'": r"a\tb\d",
    r"'C:\temp\'": "C:\\temp\\",
    r"'\\'": r"\\",
    "'it''s'": "it's",
    "''''": "'",
    "'say \"no\"'": 'say "no"',
    "'two\nlines'": "two\nlines",
    "'-- no /* comment */'": "-- no /* comment */",
    "'${spark.app.name}'": "${spark.app.name}",
    "'é€😀'": "é€😀",
    r"U&'\0041\\ \00e9'": "A\\ é",
    r"u&'!0041!!\' UESCAPE '!'": "A!\\",
    "''": "",
}
#: A condition on s, and for which of the rows it holds.
CONDITIONS = {
    r"s = 'C:\temp'": [True, False, False, False],
    r"s IN ('C:\temp', 'C:\dir')": [True, True, False, False],
    r"s LIKE 'C:\%'": [True, True, False, False],
    r"s LIKE '%\\%'": [False, False, False, False],
    "s LIKE '100!%' ESCAPE '!'": [False, False, True, False],
    "s LIKE 'it''_'": [False, False, False, True],
    r"s NOT LIKE '100\%' ESCAPE '\'": [True, True, False, True],
    r"s LIKE 'C:\\%' ESCAPE '\'": [True, True, False, False],
    "s LIKE '1!00%' ESCAPE '!'": None,
}


def table() -> pa.Table:
    times = pa.array([0, 1, 2, 3], pa.timestamp("s", "UTC"))
    texts = ["C:\\temp", "C:\\dir", "100%", "it's"]
    return pa.table({"s": texts, "ts": times, "a`b": [1, 2, 3, 4], "it's": [4, 3, 2, 1]})


def _values(of: gw.typing.TimedStream, items: str) -> pa.Table:
    found = gw.sql(f"SELECT {items} {IN}", t=of).result()
    return found if isinstance(found, pa.Table) else found.toArrow()


@pytest.mark.parametrize("literal", LITERALS)
def test_a_literal_is_the_text_that_flink_reads(literal: str) -> None:
    found = _values(stream(table()), f"{literal} AS x")
    assert found["x"].to_pylist() == [LITERALS[literal]] * 4


@pytest.mark.parametrize("escape", ["", "ab", "A", "7", "+", " ", "''", '"'])
def test_an_escape_of_code_points_is_one_character_of_no_other_meaning(escape: str) -> None:
    with pytest.raises(SqlError, match="UESCAPE takes one character") as caught:
        _values(stream(table()), rf"U&'abc' UESCAPE '{escape}' AS x")
    assert caught.value.line == 1


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_on_texts_is_flinks(condition: str) -> None:
    wanted = CONDITIONS[condition]
    if wanted is None:
        with pytest.raises(SqlError, match=r"ESCAPE|stands before"):
            _values(stream(table()), f"{condition} AS x")
        return
    assert _values(stream(table()), f"{condition} AS x")["x"].to_pylist() == wanted


@pytest.mark.parametrize("escaped", ["false", "true"])
def test_spark_reads_literals_alike_whatever_its_setting_is(
    spark: SparkSession, escaped: str
) -> None:
    of = stream(spark.createDataFrame(table().rename_columns(["s", "ts", "select", "it's"])))
    wanted: dict[str, list[str] | list[bool]] = {k: [v] * 4 for k, v in LITERALS.items()}
    wanted |= {text: each for text, each in CONDITIONS.items() if each is not None}
    texts = {f"x{i}": each for i, each in enumerate(wanted)}
    spark.conf.set(SETTING, escaped)
    try:
        items = ", ".join(f"{each} AS {name}" for name, each in texts.items())
        found = _values(of, f"{items}, `select`, `it's`")
        chosen = gw.sql(rf"SELECT `it's` {IN} WHERE s = 'C:\dir'", t=of).result().toArrow()
    finally:
        spark.conf.unset(SETTING)
    order = found["select"].to_pylist()
    for name, text in texts.items():
        assert found[name].to_pylist() == [wanted[text][i - 1] for i in order], text
    assert chosen.column(0).to_pylist() == [3]


def test_names_stand_in_backquotes_with_anything_in_them() -> None:
    found = _values(stream(table()), "`a``b`, `it's` AS `order`")
    assert found.column_names == ["a`b", "order"]
    assert found["order"].to_pylist() == [4, 3, 2, 1]


@pytest.mark.parametrize("text", ['s = "x"', 's IN ("x", "y")'])
def test_a_text_in_double_quotes_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(SqlError, match="strings take single quotes"):
        _values(stream(table()), f"{text} AS x")


def test_half_a_code_point_is_refused() -> None:
    with pytest.raises(SqlError, match="four hexadecimal digits must follow"):
        _values(stream(table()), r"U&'\00' AS x")


def test_pairs_of_surrogates_are_one_character() -> None:
    tree = parse_statement(r"SELECT U&'\D83D\DE00' AS x FROM t")
    assert tree.expressions[0].this.this == "\U0001f600"
    with pytest.raises(SqlError, match="half of a surrogate pair"):
        parse_statement(r"SELECT U&'\D83D' AS x FROM t")
