"""Lookup joins: rows with columns of a table, FOR SYSTEM_TIME AS OF processing time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import QueryError, SqlError, UnsupportedQueryError
from tests.planning.queries import rows_of
from tests.spark_glue.stream_runs import files
from tests.sql.texts import INSTANT, MONOTONOUS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4, 5], pa.int64()),
        "k": pa.array(["a", "b", None, "c", "a"]),
        "n": pa.array([1, 1, 2, 2, 3], pa.int32()),
        "ts": pa.array([0, 1_000_000, 2_000_000, 3_000_000, 12_000_000], INSTANT),
    }
)
TABLE = pa.table(
    {
        "k": pa.array(["b", "a", None, "a", "d"]),
        "n": pa.array([1, 1, 2, 3, 4], pa.int64()),
        "city": pa.array(["Bern", "Athens", "None", None, "Delhi"]),
    }
)
P = "(SELECT *, PROCTIME() AS p FROM o)"
#: Statements, and their rows in any order.
TEXTS: dict[str, list[Any]] = {
    f"SELECT r.id, d.city FROM {P} AS r JOIN d FOR SYSTEM_TIME AS OF r.p ON r.k = d.k": [
        (1, "Athens"), (1, None), (2, "Bern"), (5, "Athens"), (5, None),
    ],
    f"SELECT id, city FROM {P} r LEFT JOIN d FOR SYSTEM_TIME AS OF r.p "
    "ON d.k = r.k AND d.n = r.n": [
        (1, "Athens"), (2, "Bern"), (3, None), (4, None), (5, None),
    ],
    f"select R.ID, D.K from {P} r left join d for system_time as of (R.P) "
    "on upper(r.k) = upper(D.k) and D.city = 'Bern'": [
        (1, None), (2, "b"), (3, None), (4, None), (5, None),
    ],
    "SELECT r.id, x.city FROM o AS r JOIN d FOR SYSTEM_TIME AS OF PROCTIME() AS x "
    "ON r.n = x.n AND r.id > x.n AND r.id < 9 WHERE x.city IS NOT NULL": [
        (2, "Bern"), (2, "Athens"), (3, "None"), (4, "None"),
    ],
    "WITH q AS (SELECT id, k, ts, PROCTIME() AS p FROM o WHERE id > 1) "
    "SELECT d.city, COUNT(*) AS c FROM q JOIN d FOR SYSTEM_TIME AS OF q.p ON q.k = d.k "
    "GROUP BY d.city, TUMBLE(q.ts, INTERVAL '10' SECOND)": [
        ("Bern", 1), ("Athens", 1), (None, 1),
    ],
}  # fmt: skip


def sorted_rows(table: pa.Table) -> list[str]:
    return sorted(map(repr, (tuple(row.values()) for row in table.to_pylist())))


@pytest.mark.parametrize("text", TEXTS)
def test_columns_of_a_table(text: str) -> None:
    given = {"o": gw.stream(ROWS).event_time("ts", MONOTONOUS), "d": gw.stream(TABLE)}
    found = gw.sql(text, **given).result()
    assert sorted_rows(found) == sorted(map(repr, TEXTS[text]))
    code = gw.sql(text, **given).explain().partition("\n\n")[0]
    assert ".lookup(" in code
    reader = pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches(2))
    again = gw.sql(text, o=given["o"], d=gw.stream(reader)).result()
    assert rows_of(again) == rows_of(found)
    none = gw.sql(text, o=given["o"], d=gw.stream(TABLE.slice(0, 0))).result()
    assert len(none) == (5 if "left join" in text.lower() else 0)


def test_on_a_batch_it_is_the_same(spark: SparkSession) -> None:
    frames = (spark.createDataFrame(each) for each in (ROWS, TABLE))
    orders, table = map(gw.stream, frames)
    timed = orders.event_time("ts", MONOTONOUS)
    for text, wanted in TEXTS.items():
        found = gw.sql(text, o=timed, d=table).result().toArrow()
        assert sorted_rows(found) == sorted(map(repr, wanted)), text


@pytest.mark.thorough
def test_on_a_stream_it_is_the_same(spark: SparkSession, tmp_path: Path) -> None:
    text = next(each for each in TEXTS if "COUNT(*)" in each)
    end = ROWS.slice(1, 1).set_column(3, "ts", pa.array([10**13], pa.int64()).cast(INSTANT))
    files(tmp_path / "in", [ROWS.slice(0, 3), ROWS.slice(3), end])
    reader = spark.readStream.schema(spark.createDataFrame(ROWS).schema)
    source = gw.stream(reader.option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in")))
    waits = gw.WatermarkStrategy.for_bounded_out_of_orderness("1 hour")
    timed, table = source.event_time("ts", waits), gw.stream(spark.createDataFrame(TABLE))
    asked = gw.sql(text, o=timed, d=table).options(shards=2, device="cpu")
    out, once = tmp_path / "out", {"availableNow": True}
    query = gw.write_stream(asked.outputs(), out, tmp_path / "state", trigger=once)
    assert query.awaitTermination(120)
    found = gw.read_output(spark, out).toArrow()
    assert sorted_rows(found) == sorted(map(repr, TEXTS[text]))
    with pytest.raises(UnsupportedQueryError, match="a lookup takes a batch DataFrame"):
        timed.lookup(source, on={"k": "k"}, columns={"m": "n"})


#: A text in which # is before the place of the error, and words of the rule.
MISTAKES = {
    "windows by it": (
        f"SELECT COUNT(*) FROM TUMBLE(TABLE {P}, DESCRIPTOR(#p), INTERVAL '1' SECOND) "
        "GROUP BY window_start, window_end",
        "PROCTIME.. of a bounded table",
    ),
    "a result": (f"SELECT #p FROM {P} r", "PROCTIME.. of a bounded table"),
    "an item": ("SELECT id, #PROCTIME() AS p FROM o", "lookups, FOR SYSTEM_TIME AS OF p, and on"),
    "a condition": ("SELECT id FROM o WHERE #PROCTIME() > ts", "for lookups"),
    "an outer condition": (
        f"SELECT r.id FROM {P} r LEFT JOIN d FOR SYSTEM_TIME AS OF r.p "
        "ON r.k = d.k AND r.#id > d.n",
        "for others filter with WHERE",
    ),
    "no key": (
        f"SELECT r.id FROM {P} r JOIN #d FOR SYSTEM_TIME AS OF r.p ON d.n > r.n", "ON left.key"
    ),
    "RIGHT": (
        f"SELECT r.id FROM {P} r RIGHT JOIN #d FOR SYSTEM_TIME AS OF r.p ON d.n = r.n",
        "INNER or LEFT",
    ),
    "both have it": (
        f"SELECT #k FROM {P} r JOIN d FOR SYSTEM_TIME AS OF r.p ON d.n = r.n",
        "write the table before it",
    ),
}  # fmt: skip


@pytest.mark.parametrize("wrong", MISTAKES)
def test_mistakes_are_told_with_their_place(wrong: str) -> None:
    marked, rule = MISTAKES[wrong]
    place, text = marked.index("#") + 1, marked.replace("#", "")
    given = {"o": gw.stream(ROWS).event_time("ts", MONOTONOUS), "d": gw.stream(TABLE)}
    with pytest.raises(SqlError, match=rule) as caught:
        gw.sql(text, **given)
    assert (caught.value.line, caught.value.position) == (1, place)


@pytest.mark.parametrize(
    ("on", "columns", "rule"),
    [
        ({}, {"m": "n"}, "needs a key"),
        ({"id": "city"}, {"m": "n"}, "have one type"),
        ({"k": "k"}, {"id": "n"}, "a column of this name exists"),
        ({"other": "k"}, {"m": "n"}, "other"),
    ],
)
def test_lookups_of_the_api_are_checked(on: Any, columns: Any, rule: str) -> None:
    timed = gw.stream(ROWS).event_time("ts", MONOTONOUS)
    with pytest.raises(QueryError, match=rule):
        timed.lookup(gw.stream(TABLE), on=on, columns=columns)
