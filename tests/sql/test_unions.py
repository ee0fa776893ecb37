"""UNION ALL: rows of several SELECTs, as results and as the table of another query."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import SqlError
from tests.planning.queries import rows_of
from tests.spark_glue.stream_runs import WATERMARKS, batches, files, run_to_the_end, streamed
from tests.sql.texts import rows, stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = rows(random.Random(9), 30)
OTHER = rows(random.Random(10), 20)
HOUR = "TUMBLE(TABLE {}, DESCRIPTOR({}), INTERVAL '10' SECOND)"


def tables() -> dict[str, Any]:
    """Two tables with an event time, the same without one, and numbers of other types."""
    numbers = pa.table({
        "i": pa.array([1, None], pa.int32()), "f": pa.array([0.5, None], pa.float32()),
        "d": pa.array([2.5, None], pa.float64()),
        "e": pa.array([Decimal(1), None], pa.decimal128(5, 2)),
    })  # fmt: skip
    return {
        "a": stream(ROWS), "b": stream(OTHER), "c": gw.stream(ROWS), "d": gw.stream(OTHER),
        "numbers": gw.stream(numbers),
    }  # fmt: skip


def result(text: str) -> pa.Table:
    """Return the result of a statement, which the code that `explain` shows gives too."""
    query = gw.sql(text, **tables())
    found = query.result()
    code = query.explain().partition("\n\n")[0]
    again = eval(f"({code})", {"gw": gw, **tables()}).result()  # noqa: S307
    assert str(again.to_pylist()) == str(found.to_pylist())
    return found


@pytest.mark.parametrize(("one", "two"), ["ab", "cd", "aa"])
def test_rows_come_by_position_with_the_names_of_the_first(one: str, two: str) -> None:
    found = result(
        f"SELECT k AS key, v + 1, ts FROM {one} WHERE v > 0 UNION ALL SELECT 'x', n, ts FROM {two} "
        f"UNION ALL (SELECT NULL, 7 AS seven, ts FROM {one} AS q)"
    )
    of = {"a": ROWS, "b": OTHER, "c": ROWS, "d": OTHER}
    first, second = of[one].to_pylist(), of[two].to_pylist()
    wanted = [
        *((r["k"], r["v"] + 1, r["ts"]) for r in first if r["v"] is not None and r["v"] > 0),
        *(("x", r["n"], r["ts"]) for r in second),
        *((None, 7, r["ts"]) for r in first),
    ]
    assert found.column_names == ["key", "EXPR$1", "ts"]
    assert [tuple(row.values()) for row in found.to_pylist()] == wanted


def test_windows_over_a_union_have_the_least_watermark() -> None:
    union = "SELECT k, v, ts AS at FROM a UNION ALL SELECT k, n, ts FROM b WHERE n > 0"
    text = f"""WITH q AS ({union}) SELECT k, window_end, SUM(v) AS s FROM {HOUR.format("q", "at")}
        GROUP BY k, window_start, window_end"""
    both = tables()["a"].project("k", "v", at="ts").union(
        tables()["b"].where("n > 0").project("k", v="n", at="ts")
    )  # fmt: skip
    windows = both.key_by("k").window(gw.TumblingEventTimeWindows.of("10 seconds"))
    wanted = windows.aggregate(s=gw.sum("v")).drop_columns(["window_start"])
    assert rows_of(result(text)) == rows_of(wanted)
    assert "the least of 1: latest row" in gw.sql(text, **tables()).explain()


def test_a_union_of_results_and_rows() -> None:
    counts = f"""SELECT window_end AS e, COUNT(*) AS n FROM {HOUR.format("a", "ts")}
        GROUP BY window_start, window_end"""
    found = result(f"{counts} UNION ALL SELECT ts, v FROM b")
    windows = result(counts)
    assert found.slice(0, len(windows)).to_pylist() == windows.to_pylist()
    assert found["n"].to_pylist()[len(windows) :] == OTHER["v"].to_pylist()
    numbered = f"SELECT e FROM ({counts}) UNION ALL SELECT window_end FROM {HOUR.format('b', 'ts')}"
    assert len(result(numbered)) == len(windows) + len(OTHER)


def test_a_union_within_queries() -> None:
    inner = "SELECT k, v FROM c UNION ALL (SELECT k, n FROM d UNION ALL SELECT 'z', 1 FROM d)"
    found = result(f"SELECT v * 2 AS w FROM ({inner}) AS u WHERE u.k = 'z' AND v < 5")
    assert found["w"].to_pylist() == [2] * len(OTHER)
    again = result("SELECT k, v, n FROM c WHERE v > 100 UNION ALL SELECT k, NULL, NULL FROM d")
    assert [row["k"] for row in again.to_pylist()] == OTHER["k"].to_pylist()
    twice = result("WITH r AS (SELECT v FROM c) SELECT v FROM r UNION ALL SELECT v + 1 FROM r")
    values = ROWS["v"].to_pylist()
    assert twice["v"].to_pylist() == [*values, *(None if v is None else v + 1 for v in values)]


def test_a_union_without_all_has_distinct_rows() -> None:
    values = {*ROWS["k"].to_pylist(), *OTHER["k"].to_pylist(), "z"}
    for first in ("UNION", "UNION ALL"):
        found = result(f"SELECT k FROM a {first} SELECT k FROM b UNION SELECT 'z' FROM b")
        assert sorted(found["k"].to_pylist(), key=str) == sorted(values, key=str)
    within = result("SELECT k FROM (SELECT k FROM c UNION SELECT k FROM d) AS u WHERE k = 'a'")
    assert within["k"].to_pylist() == ["a"]


@pytest.mark.parametrize(
    ("one", "two", "wanted"),
    [
        ("i", "CAST(i AS BIGINT)", pa.int64()),
        ("i", "f", pa.float32()),
        ("i", "d", pa.float64()),
        ("f", "d", pa.float64()),
        ("e", "f", pa.float64()),
        ("e", "i", pa.decimal128(12, 2)),
        ("NULL", "e", pa.decimal128(5, 2)),
        ("d", "NULL", pa.float64()),
    ],
)
def test_types_are_widened_as_in_flink(one: str, two: str, wanted: pa.DataType) -> None:
    for first, second in ((one, two), (two, one)):
        found = result(f"SELECT {first} AS x FROM numbers UNION ALL SELECT {second} FROM numbers")
        assert found.schema.field("x").type == wanted
        assert found["x"].null_count == (3 if "NULL" in (one, two) else 2)


#: Statements that are refused, with # before the place, and what the message says.
REFUSED = {
    "another number": ("SELECT k FROM a UNION ALL SELECT #k, v FROM b", "the first has 1, got 2"),
    "other types": ("SELECT k, v FROM a UNION ALL SELECT #v, v FROM b", "column 1.*k: CAST one"),
    "one without a time": ("SELECT k FROM a UNION ALL SELECT #k FROM d", "all have an event time"),
    "INTERSECT": ("SELECT k FROM a INTERSECT SELECT #k FROM b", "a SEMI join in windows"),
    "EXCEPT": ("SELECT k FROM a EXCEPT SELECT #k FROM b", "an ANTI join in windows"),
    "within": ("SELECT 1 AS x FROM a UNION ALL SELECT #nosuch FROM b", "there is no such column"),
    "two names": ("SELECT k, #v AS K FROM a UNION ALL SELECT k, v FROM b", "differ in case alone"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str) -> None:
    text, rule = REFUSED[case]
    with pytest.raises(SqlError, match=rule) as caught:
        gw.sql(text.replace("#", ""), **tables())
    assert (caught.value.line, caught.value.position) == (1, text.index("#") + 1)


@pytest.mark.thorough
def test_unions_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    """Batch and streaming give what Spark's SQL gives."""
    parts = batches(3, 100)
    frame = spark.createDataFrame(pa.concat_tables(parts))
    frame.createOrReplaceTempView("rows_of_union")
    text = (
        "SELECT k AS key, UPPER(text) AS shout FROM {0} WHERE k < 15 "
        "UNION ALL SELECT seq, NULL FROM {0} UNION ALL SELECT v, text FROM {0} WHERE v > 20"
    )
    wanted = rows_of(spark.sql(text.format("rows_of_union")).toArrow())
    for table in (gw.stream(frame), gw.stream(frame).event_time("ts", WATERMARKS)):
        assert rows_of(gw.sql(text.format("t"), t=table).result().toArrow()) == wanted
    for timed in (True, False):
        folder = tmp_path / str(timed)
        folder.mkdir()
        files(folder / "in", parts)
        arriving: Any = gw.stream(streamed(spark, folder / "in"))
        arriving = arriving.event_time("ts", WATERMARKS) if timed else arriving
        run_to_the_end(gw.sql(text.format("t"), t=arriving).outputs(), folder)
        assert rows_of(gw.read_output(spark, folder / "out").toArrow()) == wanted


@pytest.mark.thorough
def test_windows_over_a_union_of_streams(spark: SparkSession, tmp_path: Path) -> None:
    parts = batches(3, 100)
    text = f"""SELECT k, window_end, COUNT(*) AS n, SUM(v) AS s FROM {HOUR.format("q", "ts")}
        GROUP BY k, window_start, window_end"""
    union = "WITH q AS (SELECT k, v, ts FROM t WHERE v > 1 UNION ALL SELECT k, seq, ts FROM u) "
    found = []
    for name in "tu":
        files(tmp_path / name, parts)
    waits = gw.WatermarkStrategy.for_bounded_out_of_orderness("1 hour")
    ends = gw.stream(streamed(spark, tmp_path / "t")).event_time("ts", waits)
    local = gw.stream(pa.concat_tables(parts)).event_time("ts", waits)
    other = gw.stream(streamed(spark, tmp_path / "u")).event_time("ts", waits)
    run_to_the_end(gw.sql(union + text, t=ends, u=other).outputs(), tmp_path)
    found = rows_of(gw.read_output(spark, tmp_path / "out").toArrow())
    wanted = rows_of(gw.sql(union + text, t=local, u=local).result())
    assert {*found} <= {*wanted}
    batch = gw.stream(spark.createDataFrame(pa.concat_tables(parts))).event_time("ts", waits)
    assert rows_of(gw.sql(union + text, t=batch, u=batch).result().toArrow()) == wanted
