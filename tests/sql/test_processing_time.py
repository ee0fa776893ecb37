"""PROCTIME() as the time of rows: on streams the time at which they arrive."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import SqlError
from tests.spark_glue.stream_runs import files, run_to_the_end, streamed
from tests.spark_glue.streams.test_ingestion_time import set_clock_back
from tests.sql.texts import MONOTONOUS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

INSTANT = pa.timestamp("us", "UTC")
P = "(SELECT *, PROCTIME() AS Pt FROM t)"
BY = "GROUP BY k, window_start, window_end"
NUMBERED = "ROW_NUMBER() OVER (PARTITION BY k ORDER BY pt"

#: Texts over `P`, and a part of their code.
CODES = {
    f"SELECT k, COUNT(*) AS n FROM TUMBLE(TABLE {P}, DESCRIPTOR(pt), INTERVAL '10' SECOND) {BY}":
        ".window(gw.TumblingEventTimeWindows.of('10 s'))",
    f"SELECT k, COUNT(*) AS n FROM HOP(TABLE {P}, DESCRIPTOR(PT), INTERVAL '5' SECOND, "
    f"INTERVAL '10' SECOND) {BY}": ".window(gw.SlidingEventTimeWindows.of('10 s', '5 s'))",
    f"SELECT k, COUNT(*) AS n FROM CUMULATE(TABLE {P}, DESCRIPTOR(pt), INTERVAL '5' SECOND, "
    f"INTERVAL '10' SECOND) {BY}": ".window(gw.CumulativeEventTimeWindows.of('10 s', '5 s'))",
    f"SELECT k, COUNT(*) AS n FROM SESSION(TABLE {P} PARTITION BY k, DESCRIPTOR(pt), "
    f"INTERVAL '1' SECOND) {BY}": ".window(gw.EventTimeSessionWindows.with_gap('1 s'))",
    f"WITH q AS {P} SELECT k, TUMBLE_END(q.Pt, INTERVAL '1' DAY) AS s FROM q "
    "GROUP BY k, TUMBLE(q.Pt, INTERVAL '1' DAY)": "TumblingEventTimeWindows.of('1 d'",
    f"SELECT k, COUNT(*) AS n FROM TUMBLE(TABLE (SELECT k, pt FROM {P} UNION ALL "
    f"SELECT UPPER(k), PROCTIME() FROM t), DESCRIPTOR(pt), INTERVAL '1' SECOND) {BY}": ".union(",
    f"SELECT k, COUNT(*) OVER (PARTITION BY k ORDER BY pt) AS n FROM {P}":
        "n=gw.count().over(gw.Rows())",
    f"SELECT *, COUNT(*) OVER (PARTITION BY k ORDER BY pt RANGE BETWEEN INTERVAL '1' MINUTE "
    f"PRECEDING AND CURRENT ROW) AS n FROM {P}": ".select('k', 'i', 'ts', {'Pt': '`arrived_at`'}",
    f"SELECT k, i FROM (SELECT *, {NUMBERED} DESC) AS r FROM {P}) WHERE r = 1": "first=False",
    f"SELECT * FROM (SELECT k, pt, i, {NUMBERED}) AS r FROM {P} WHERE i > 1) WHERE r <= 2":
        ".select('k', {'pt': '`arrived_at`'}, 'i', 'r', 'change')",
    f"SELECT * FROM {P} MATCH_RECOGNIZE (PARTITION BY k ORDER BY pt MEASURES B.i AS m PATTERN "
    "(A B) DEFINE B AS B.i > A.i)": ".match_recognize(",
    f"SELECT * FROM {P} WHERE i > 1": ".select('k', 'i', 'ts', Pt=",
}  # fmt: skip

#: A text in which # is before the place of the error, and words of the rule.
MISTAKES = {
    "windows": (
        f"SELECT k FROM TUMBLE(TABLE {P}, DESCRIPTOR(#pt), INTERVAL '1' SECOND) {BY}", "bounded"
    ),
    "old windows": (f"SELECT k FROM {P} GROUP BY k, TUMBLE(#pt, INTERVAL '1' DAY)", "bounded"),
    "OVER": (f"SELECT COUNT(*) OVER (ORDER BY #pt) AS n FROM {P}", "bounded"),
    "deduplication": (
        f"SELECT k FROM (SELECT *, {NUMBERED.replace('pt', '#pt')} DESC) AS r FROM {P}) "
        "WHERE r = 1", "bounded"
    ),
    "all columns": (f"SELECT #* FROM {P}", "bounded"),
    "two of a name": (
        "SELECT k FROM (SELECT k, PROCTIME() AS p, #PROCTIME() AS P FROM t)", "two columns"
    ),
    "other positions": (
        f"SELECT k FROM (SELECT k, pt FROM {P} UNION ALL SELECT #pt, k FROM {P})", "same positions"
    ),
}  # fmt: skip


@pytest.mark.parametrize("wrong", MISTAKES)
def test_of_a_bounded_table_it_is_refused(wrong: str) -> None:
    marked, rule = MISTAKES[wrong]
    rows = gw.stream(pa.table({"k": ["a"], "ts": pa.array([0], INSTANT)}))
    with pytest.raises(SqlError, match=rule) as caught:
        gw.sql(marked.replace("#", ""), t=rows.event_time("ts", MONOTONOUS))
    assert (caught.value.line, caught.value.position) == (1, marked.index("#") + 1)


def table(numbers: list[int]) -> pa.Table:
    times = pa.array([0] * len(numbers), INSTANT)
    return pa.table({"k": ["ab"[i % 2] for i in numbers], "i": numbers, "ts": times})


def source(spark: SparkSession, folder: Path, *batches: list[int]) -> DataFrame:
    files(folder / "in", [*map(table, batches)])
    return streamed(spark, folder / "in", table([0]))


@pytest.mark.thorough
def test_on_a_stream_it_is_ingestion_time(spark: SparkSession, tmp_path: Path) -> None:
    rows = gw.stream(source(spark, tmp_path, [0]))
    for given in (rows, rows.event_time("ts", MONOTONOUS)):
        for text, code in CODES.items():
            found = gw.sql(text, t=given).explain().partition("\n\n")[0]
            assert ".ingestion_time()" in found, text
            assert code in found, found
    by_event_time = f"SELECT k FROM TUMBLE(TABLE {P}, DESCRIPTOR(ts), INTERVAL '1' SECOND) {BY}"
    timed = rows.event_time("ts", MONOTONOUS)
    assert "ingestion" not in gw.sql(by_event_time, t=timed).explain().partition("\n\n")[0]


def run(spark: SparkSession, text: str, folder: Path, *batches: list[int]) -> list[Any]:
    """Run a micro-batch in each start, an hour after the one before."""
    for count in range(1, len(batches) + 1):
        rows = gw.stream(source(spark, folder, *batches[:count]))
        run_to_the_end(gw.sql(text, t=rows).options(shards=2).outputs(), folder)
        set_clock_back(folder)
    return gw.read_output(spark, folder / "out").collect()


@pytest.mark.thorough
def test_windows_count_every_row_once(spark: SparkSession, tmp_path: Path) -> None:
    text = """
        SELECT k, COUNT(*) AS n, SUM(i) AS total, window_start, window_end
        FROM TUMBLE(TABLE (SELECT *, PROCTIME() AS p_time FROM t), DESCRIPTOR(p_time),
                    INTERVAL '10' SECOND)
        GROUP BY k, window_start, window_end
    """
    begin = time.time()
    found = run(spark, text, tmp_path, [*range(100)], [*range(100, 150)], [1])
    counts, totals = Counter[str](), Counter[str]()
    for row in found:
        counts[row["k"]] += row["n"]
        totals[row["k"]] += row["total"]
        length = row["window_end"] - row["window_start"]
        assert length.total_seconds() == 10
        assert row["window_end"].timestamp() > begin
    assert counts == {"a": 75, "b": 75}
    assert totals == {"a": sum(range(0, 150, 2)), "b": sum(range(1, 150, 2))}
    assert len({row["window_start"] for row in found}) == 2
    assert gw.read_output(spark, tmp_path / "out", "late").count() == 0


@pytest.mark.slow
@pytest.mark.parametrize(("order", "last"), [("ASC", {"a": 0, "b": 5}), ("DESC", {"a": 8, "b": 5})])
def test_of_one_time_rows_are_in_order_of_arrival(
    spark: SparkSession, tmp_path: Path, order: str, last: dict[str, int]
) -> None:
    text = f"SELECT k, i FROM (SELECT *, {NUMBERED} {order}) AS r FROM {P}) WHERE r = 1"
    found = run(spark, text, tmp_path, [0, 2], [4, 5], [6, 8])
    changes = {row["k"]: row["i"] for row in sorted(found, key=lambda row: row["i"])}
    assert changes == last
    assert len(found) == (2 if order == "ASC" else 4)


@pytest.mark.slow
def test_over_counts_one_row_after_another(spark: SparkSession, tmp_path: Path) -> None:
    text = f"SELECT k, i, SUM(i) OVER (PARTITION BY k ORDER BY pt) AS s FROM {P}"
    found = run(spark, text, tmp_path, [0, 2, 4], [6, 3], [1])
    assert sorted(map(tuple, found)) == [
        ("a", 0, 0), ("a", 2, 2), ("a", 4, 6), ("a", 6, 12), ("b", 3, 3)
    ]  # fmt: skip
