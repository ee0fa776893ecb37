"""UNNEST: rows of the elements of lists and maps, on Arrow tables, Spark and streams."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import SqlError
from tests.planning.queries import rows_of
from tests.spark_glue.stream_runs import files
from tests.sql.texts import INSTANT, MONOTONOUS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ITEM = pa.struct({"a": pa.int64(), "b": pa.string()})
ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4, 5], pa.int64()),
        "tags": pa.array([["x", "y"], None, [], ["z", None], ["x"]], pa.list_(pa.string())),
        "m": pa.array([[("p", 1)], None, [], [("q", 2), ("r", None)], [("p", 4)]],
                      pa.map_(pa.string(), pa.int64())),
        "items": pa.array([[{"a": 1, "b": "u"}], None, [],
                           [{"a": None, "b": "v"}, {"a": 3, "b": None}], [{"a": 1, "b": "w"}]],
                          pa.list_(ITEM)),
        "ts": pa.array([0, 1_000_000, 2_000_000, 3_000_000, 12_000_000], INSTANT),
    }
)  # fmt: skip
WINDOWS = "TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND)"
#: Statements, and their rows in any order.
TEXTS: dict[str, list[Any]] = {
    "SELECT id, tag FROM t CROSS JOIN UNNEST(tags) AS x (tag)": [
        (1, "x"), (1, "y"), (4, "z"), (4, None), (5, "x"),
    ],
    "select T.ID, X.TAG as g from T, unnest(T.tags) as x(`tag`) where x.tag <> 'y'": [
        (1, "x"), (4, "z"), (5, "x"),
    ],
    "SELECT id, tag, n FROM t LEFT JOIN UNNEST(tags) WITH ORDINALITY AS x (tag, n) ON TRUE": [
        (1, "x", 1), (1, "y", 2), (2, None, None), (3, None, None), (4, "z", 1), (4, None, 2),
        (5, "x", 1),
    ],
    "SELECT id, k, v FROM t LEFT JOIN UNNEST(m) AS x (k, v) ON TRUE": [
        (1, "p", 1), (2, None, None), (3, None, None), (4, "q", 2), (4, "r", None), (5, "p", 4),
    ],
    "SELECT id, p, q FROM t CROSS JOIN UNNEST(items) AS x (p, q)": [
        (1, 1, "u"), (4, None, "v"), (4, 3, None), (5, 1, "w"),
    ],
    "SELECT id, a, b FROM t, UNNEST(items)": [
        (1, 1, "u"), (4, None, "v"), (4, 3, None), (5, 1, "w"),
    ],
    "SELECT id, x.tag, k FROM t, UNNEST(tags) AS x (tag), UNNEST(m) AS y (k, v) WHERE v > 1": [
        (4, "z", "q"), (4, None, "q"), (5, "x", "p"),
    ],
    "SELECT t.id, x.id FROM t INNER JOIN UNNEST(tags) AS x (id) ON TRUE WHERE x.id = 'x'": [
        (1, "x"), (5, "x"),
    ],
    f"SELECT tag, COUNT(*) AS n FROM {WINDOWS} CROSS JOIN UNNEST(tags) AS x (tag) "
    "GROUP BY tag, window_start, window_end": [
        ("x", 1), ("y", 1), ("z", 1), (None, 1), ("x", 1),
    ],
    "SELECT id, tag, r FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end "
    f"ORDER BY tag DESC) AS r FROM {WINDOWS}, UNNEST(tags) AS x (tag)) WHERE r <= 2": [
        (4, "z", 1), (1, "y", 2), (5, "x", 1),
    ],
}  # fmt: skip


def sorted_rows(table: pa.Table) -> list[Any]:
    return sorted(map(repr, (tuple(row.values()) for row in table.to_pylist())))


@pytest.mark.parametrize("text", TEXTS)
def test_rows_of_elements(text: str) -> None:
    query = gw.sql(text, t=gw.stream(ROWS).event_time("ts", MONOTONOUS))
    assert sorted_rows(query.result()) == sorted(map(repr, TEXTS[text]))
    sliced = gw.stream(pa.concat_tables([ROWS.slice(0, 2), ROWS.slice(2)]))
    again = gw.sql(text, t=sliced.event_time("ts", MONOTONOUS)).result()
    assert rows_of(again) == rows_of(query.result())


def test_on_a_batch_it_is_the_same(spark: SparkSession) -> None:
    frame = gw.stream(spark.createDataFrame(ROWS)).event_time("ts", MONOTONOUS)
    for text, wanted in TEXTS.items():
        found = gw.sql(text, t=frame).result().toArrow()
        assert sorted_rows(found) == sorted(map(repr, wanted)), text


@pytest.mark.thorough
def test_on_a_stream_it_is_the_same(spark: SparkSession, tmp_path: Path) -> None:
    text = next(each for each in TEXTS if "COUNT(*)" in each)
    at = ROWS.schema.get_field_index("ts")
    end = ROWS.slice(4).set_column(at, "ts", pa.array([10**13], pa.int64()).cast(INSTANT))
    files(tmp_path / "in", [ROWS.slice(0, 3), ROWS.slice(3), end])
    reader = spark.readStream.schema(spark.createDataFrame(ROWS).schema)
    source = gw.stream(reader.option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in")))
    waits = gw.WatermarkStrategy.for_bounded_out_of_orderness("1 hour")
    asked = gw.sql(text, t=source.event_time("ts", waits)).options(shards=2, device="cpu")
    out, once = tmp_path / "out", {"availableNow": True}
    query = gw.write_stream(asked.outputs(), out, tmp_path / "state", trigger=once)
    assert query.awaitTermination(120)
    found = gw.read_output(spark, out).toArrow()
    assert sorted_rows(found) == sorted(map(repr, TEXTS[text]))


def test_names_of_both_sides() -> None:
    query = gw.sql("SELECT * FROM t, UNNEST(tags) AS x (id)", t=gw.stream(ROWS))
    assert query.result().column_names == ["id", "tags", "m", "items", "ts", "id0"]
    both = gw.sql("SELECT x.id, t.id FROM t, UNNEST(tags) AS x (id)", t=gw.stream(ROWS)).result()
    assert both.column_names == ["id", "id0"]
    assert both["id"].to_pylist() == ["x", "y", "z", None, "x"]


MISTAKES = {
    "no list": ("SELECT id FROM t, UNNEST(#id) AS x (a)", "a list"),
    "too many names": ("SELECT id FROM t, UNNEST(#tags) AS x (a, b)", "have 1 columns"),
    "no names": ("SELECT id FROM t, UNNEST(#tags)", "name the columns of UNNEST"),
    "a condition": (
        "SELECT id FROM t LEFT JOIN UNNEST(#tags) AS x (a) ON a = 'x'", "LEFT JOIN ... ON TRUE"
    ),
    "both have it": ("SELECT #id FROM t, UNNEST(tags) AS x (id)", "write the table before it"),
    "no such column": ("SELECT id FROM t, UNNEST(#other) AS x (a)", "other"),
}  # fmt: skip


@pytest.mark.parametrize("wrong", MISTAKES)
def test_mistakes_are_told_with_their_place(wrong: str) -> None:
    marked, rule = MISTAKES[wrong]
    place, text = marked.index("#") + 1, marked.replace("#", "")
    with pytest.raises(SqlError, match=rule) as caught:
        gw.sql(text, t=gw.stream(ROWS).event_time("ts", MONOTONOUS))
    assert (caught.value.line, caught.value.position) == (1, place)
