"""JSON that is odd gives what Flink 2.3 gives, and each text is parsed once."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.expressions.functions import json_texts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PARTS = ("j IS JSON", "JSON_EXISTS(j, '$.a.b')", "JSON_VALUE(j, '$.a.b')", "JSON_VALUE(j, '$')")
#: Documents with Flink's answers.
_ODD: dict[str, tuple[bool, bool, str | None, str | None]] = {
    "{'a':{'b':1}}": (False, False, None, None),
    '{"a":{"b":"x\ty"}}': (False, False, None, None),
    '{"a":{"b":01}}': (False, False, None, None),
    '{"a":{"b":NaN}}': (False, False, None, None),
    '{"a":{"b":1}} trailing': (True, True, "1", None),
    '{"a":{"b":1}}}': (True, True, "1", None),
    '{"a":{"b":-0}}': (True, True, "0", None),
    '{"a":1} {"a":{"b":1}}': (True, False, None, None),
    "1 2": (True, False, None, "1"),
    "1,2": (False, False, None, None),
    "1abc": (False, False, None, None),
    "truex": (False, False, None, None),
    "true x": (True, False, None, "true"),
    '"a"b': (True, False, None, "a"),
    '\ufeff{"a":1}': (False, False, None, None),
    "": (False, False, None, None),
}
#: The last value of a key that is there twice, as in Flink; over DataFrames it is no JSON.
_TWICE = '{"a":{"b":1},"a":{"b":2}}'


def _stream(texts: list[str]) -> pa.Table:
    at = pa.array([datetime(2024, 1, 1)] * len(texts), pa.timestamp("us", "UTC"))
    return pa.table({"ts": at, "i": range(len(texts)), "j": texts})


def _answers(table: pa.Table | DataFrame) -> list[tuple[Any, ...]]:
    rows = gw.stream(table).event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    columns = ", ".join(f"{each} AS r{at}" for at, each in enumerate(_PARTS))
    found: Any = gw.sql(f"SELECT i, {columns} FROM t", t=rows).result()
    if not isinstance(found, pa.Table):
        found = found.toArrow()
    return [tuple(row.values())[1:] for row in found.sort_by("i").to_pylist()]


def test_over_arrow_tables() -> None:
    found = _answers(_stream([*_ODD, _TWICE]))
    assert dict(zip(_ODD, found, strict=False)) == _ODD
    assert found[-1] == (True, True, "2", None)


def test_over_data_frames(spark: SparkSession) -> None:
    found = _answers(spark.createDataFrame(_stream([*_ODD, _TWICE])))
    assert dict(zip(_ODD, found, strict=False)) == _ODD
    assert found[-1] == (False, False, None, None)


def test_a_text_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    parse = json_texts._parse

    def counted(text: str) -> Any:
        parsed.append(text)
        return parse(text)

    monkeypatch.setattr(json_texts, "_parse", counted)
    texts = [f'{{"a":{{"b":{at}}}}}' for at in range(5)]
    assert [row[2] for row in _answers(_stream([*texts, *texts]))] == [*"0123401234"]
    assert sorted(parsed) == texts


def test_few_texts_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_texts, "_MAX_HELD", 20)
    texts = [f'{{"a":{{"b":{at}}}}}' for at in range(5)]
    assert [row[2] for row in _answers(_stream(texts))] == [*"01234"]
