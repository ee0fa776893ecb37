"""Queries whose table is a query with windows, OVER, a numbering or a join: windows of windows."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import SqlError, StateMismatchError
from tests.lanes import quick
from tests.planning.queries import rows_of
from tests.spark_glue.stream_runs import files
from tests.sql.texts import MONOTONOUS, rows, stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TWO = gw.TumblingEventTimeWindows.of("2 seconds")
TEN = gw.TumblingEventTimeWindows.of("10 seconds")
IN_TWO = "FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '2' SECOND)"
COUNTS = f"""SELECT k, window_time AS at, COUNT(*) AS n {IN_TWO}
    GROUP BY k, window_start, window_end, window_time"""
OF_TEN = "FROM TUMBLE(TABLE q, DESCRIPTOR(at), INTERVAL '10' SECOND)"
BY = "GROUP BY window_start, window_end"


@pytest.fixture(scope="module")
def tables() -> dict[str, gw.typing.TimedStream]:
    rng = random.Random(7)
    return {name: stream(rows(rng, 200)) for name in "tu"}


def counts(tables: Any) -> gw.typing.Outputs:
    outputs: gw.typing.Outputs = (
        tables["t"].key_by("k").window(TWO).with_outputs().aggregate(n=gw.count())
    )
    return outputs


def same(text: str, tables: Any, wanted: pa.Table) -> None:
    """The text gives it, and so does the Python that explains it."""
    asked = gw.sql(text, **tables)
    found = asked.result()
    assert found.column_names == wanted.column_names
    assert rows_of(found) == rows_of(wanted)
    assert len(found)
    said = asked.explain().partition("\n\n")[0]
    assert "gw.stream_results(" in said
    again = eval(f"({said})", {"gw": gw, **tables})  # noqa: S307
    assert rows_of(again.result()) == rows_of(wanted)


def test_windows_of_windows_by_a_time_of_any_name(tables: Any) -> None:
    wanted = gw.stream_results(counts(tables)).window_all(TEN).aggregate(n=gw.sum("n"))
    text = f"SELECT window_start, window_end, SUM(n) AS n {OF_TEN} {BY}"
    same(f"WITH q AS ({COUNTS}) {text}", tables, wanted)
    around = f"WITH p AS ({COUNTS}), q AS (SELECT n, at FROM p) {text}"
    same(around, tables, wanted)
    alike = f"WITH q AS ({COUNTS.replace(' AS at', '')}) {text.replace('(at)', '(window_time)')}"
    same(alike, tables, wanted)


def test_three_stages_each_chosen_of(tables: Any) -> None:
    text = f"""
        WITH q AS ({COUNTS} HAVING COUNT(*) > 1),
        tens AS (SELECT window_time AS at, k, SUM(n) AS n {OF_TEN} WHERE n < 6 {BY}, k)
        SELECT k, window_start, MAX(m) AS most FROM (
            SELECT k AS k, n * 2 AS m, at FROM tens WHERE k IS NOT NULL
        ) GROUP BY k, SESSION(at, INTERVAL '11' SECOND)"""
    text = text.replace("k, window_start, MAX(m)", "k, MAX(m)")
    few = gw.stream_results(counts(tables).select("k", "n", where="n > 1")).where("n < 6")
    tens = few.key_by("k").window(TEN).with_outputs().aggregate(n=gw.sum("n"))
    last = gw.stream_results(tens).where("k IS NOT NULL").with_columns(m="n * 2").key_by("k")
    sessions = last.window(gw.EventTimeSessionWindows.with_gap("11 seconds"))
    same(text, tables, sessions.aggregate(most=gw.max("m")).select(["k", "most"]))


def test_the_same_windows_again(tables: Any) -> None:
    inner = f"SELECT k, window_start, window_end AS e, COUNT(*) AS n {IN_TWO} {BY}, k"
    wanted = gw.stream_results(counts(tables)).window_all(TWO).aggregate(keys=gw.count())
    text = f"""SELECT window_start, e AS window_end, COUNT(*) AS keys FROM ({inner})
        GROUP BY window_start, e"""
    same(text, tables, wanted)
    totals = tables["u"].key_by("k").window(TWO).with_outputs().aggregate(s=gw.sum("v"))
    one, other = (gw.stream_results(each).key_by("k") for each in (counts(tables), totals))
    joined = one.join(other).window(TWO).select(["n"], ["s"])
    pairs = joined.select(["left_n", "right_s"]).rename_columns(["n", "s"])
    sums = f"SELECT k, window_start, window_end AS e, SUM(v) AS s {IN_TWO} {BY}, k"
    sums = sums.replace("TABLE t", "TABLE u")
    text = f"""WITH a AS ({inner}), b AS ({sums}) SELECT n, s FROM a JOIN b
        ON a.k = b.k AND a.window_start = b.window_start AND a.e = b.e"""
    same(text, tables, pairs)


def test_windows_of_rows_with_frames(tables: Any) -> None:
    over = tables["t"].key_by("k").over(gw.Rows(2)).with_outputs().aggregate(["k"], s=gw.sum("v"))
    wanted = gw.stream_results(over).window_all(TEN).aggregate(most=gw.max("s"))
    frame = "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"
    inner = f"SELECT ts AS at, SUM(v) OVER (PARTITION BY k ORDER BY ts {frame}) AS s FROM t"
    text = f"WITH q AS ({inner}) SELECT window_start, window_end, MAX(s) AS most {OF_TEN} {BY}"
    same(text, tables, wanted)


def test_frames_and_first_rows_of_windows(tables: Any) -> None:
    again = gw.stream_results(counts(tables))
    over = again.key_by("k").over(gw.Rows(1)).aggregate(["n"], s=gw.sum("n"))
    frame = "OVER (PARTITION BY k ORDER BY at ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)"
    text = f"WITH q AS ({COUNTS}) SELECT k, n, SUM(n) {frame} AS s FROM q"
    same(text, tables, over.select(["k", "n", "s"]))
    top = again.window_all(TEN).top(1, ["n", "k"], descending=[True, False], columns=["k", "n"])
    order = "PARTITION BY window_start, window_end ORDER BY n DESC, k"
    text = f"""WITH q AS ({COUNTS}) SELECT k, n, window_end FROM (
        SELECT *, ROW_NUMBER() OVER ({order}) AS r {OF_TEN}) WHERE r = 1"""
    same(text, tables, top.select(["k", "n", "window_end"]))
    best = (
        tables["t"]
        .window_all(TWO)
        .with_outputs()
        .top(1, ["v", "k"], descending=[True, False], columns=["v"])
    )
    wanted = gw.stream_results(best).window_all(TEN).aggregate(v=gw.sum("v"))
    inner = f"""SELECT v, window_time AS at FROM (SELECT *, ROW_NUMBER() OVER (
        {order.replace("n DESC", "v DESC")}) AS r {IN_TWO}) WHERE r <= 1"""
    text = f"WITH q AS ({inner}) SELECT window_start, window_end, SUM(v) AS v {OF_TEN} {BY}"
    same(text, tables, wanted)


#: How tables are joined, how far the right row may be behind, and whose time is never less.
JOINS = [
    ("JOIN", "u.ts BETWEEN t.ts AND t.ts + INTERVAL '1' SECOND", "u"),
    ("LEFT JOIN", "u.ts BETWEEN t.ts - INTERVAL '1' SECOND AND t.ts", "t"),
    ("RIGHT JOIN", "u.ts BETWEEN t.ts AND t.ts + INTERVAL '1' SECOND", "u"),
]


@pytest.mark.parametrize(("how", "near", "side"), JOINS)
def test_windows_of_pairs(tables: Any, how: Any, near: str, side: str) -> None:
    kind = how.split()[0].lower().replace("join", "inner")
    bounds = ("0 s", "1 s") if side == "u" else ("-1 s", "0 s")
    left, right = (tables[name].key_by("k") for name in "tu")
    outputs = (
        left.interval_join(right)
        .between(*bounds)
        .with_outputs()
        .select({"a": "v"}, {"b": "v"}, how=kind)
    )
    wanted = gw.stream_results(outputs).window_all(TEN).aggregate(a=gw.sum("a"), b=gw.sum("b"))
    inner = f"SELECT t.v AS a, u.v AS b, {side}.ts AS at FROM t {how} u ON t.k = u.k AND {near}"
    outer = f"SELECT window_start, window_end, SUM(a) AS a, SUM(b) AS b {OF_TEN} {BY}"
    same(f"WITH q AS ({inner}) {outer}", tables, wanted)
    other = inner.replace(f"{side}.ts AS at", f"{'tu'.replace(side, '')}.ts AS at")
    with pytest.raises(SqlError, match=r"does not select its time.*got at"):
        gw.sql(f"WITH q AS ({other}) {outer}", **tables)


def test_windows_of_a_join_of_windows(tables: Any) -> None:
    left, right = (tables[name].key_by("k") for name in "tu")
    outputs = left.join(right).window(TWO).with_outputs().select({"a": "v"}, {"b": "v"}, how="left")
    wanted = gw.stream_results(outputs).window_all(TEN).aggregate(a=gw.sum("a"), b=gw.sum("b"))
    both = (f"(SELECT * {IN_TWO.replace('TABLE t', f'TABLE {name}')}) {name}" for name in "tu")
    inner = f"""SELECT t.v AS a, u.v AS b, t.window_time AS at FROM {" LEFT JOIN ".join(both)}
        ON t.k = u.k AND t.window_start = u.window_start AND t.window_end = u.window_end"""
    text = f"WITH q AS ({inner}) SELECT window_start, window_end, SUM(a) AS a, SUM(b) AS b"
    same(f"{text} {OF_TEN} {BY}", tables, wanted)
    with pytest.raises(SqlError, match="does not select its time"):
        gw.sql(f"{text.replace('t.window_time', 'u.window_time')} {OF_TEN} {BY}", **tables)


def test_a_time_is_not_told_by_its_text(tables: Any) -> None:
    frame = "OVER (PARTITION BY k ORDER BY at ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)"
    inner = COUNTS.replace("AS at", "AS at, window_end")
    over = (
        f"SELECT window_end - INTERVAL '0.000001' SECOND AS again, at, SUM(n) {frame} AS n FROM p"
    )
    text = f"WITH p AS ({inner}), q AS ({over}) SELECT SUM(n) AS n {OF_TEN} {BY}"
    assert len(gw.sql(text, **tables).result())
    with pytest.raises(SqlError, match="the event time of q is at"):
        gw.sql(text.replace("DESCRIPTOR(at)", "DESCRIPTOR(again)"), **tables)


def test_order_of_arrival_is_that_of_tables(tables: Any) -> None:
    text = f"WITH q AS ({COUNTS}) SELECT window_end, SUM(n) AS n {OF_TEN} {BY}"
    ordered = gw.sql(text, **tables).arrival_order("v").options(batch_rows=100)
    assert ordered.explain().count(".arrival_order('v')") == 1
    assert ordered.explain().count(".options(batch_rows=100)") == 2
    assert rows_of(ordered.result()) == rows_of(gw.sql(text, **tables).result())


Q = f"WITH q AS ({COUNTS})".replace("\n", " ")
#: What is wrong, a text in which # is before the place that is told, and words of the rule.
MISTAKES = {
    "no time": (
        f"{Q.replace('window_time AS at, ', '')} SELECT SUM(n) AS n "
        f"{OF_TEN.replace('at', '#n')} {BY}",
        "does not select its time",
    ),
    "another time": (f"{Q} SELECT SUM(n) AS n {OF_TEN.replace('(at', '(#n')} {BY}", "of q is at"),
    "a column that is not shown": (f"{Q} SELECT SUM(#window_x) AS n {OF_TEN} {BY}", "there are k"),
    "a hidden column": (
        f"{Q} SELECT COUNT(#window_time) AS n {OF_TEN} {BY}",
        "belongs to a result",
    ),
    "the same names": (
        f"{Q.replace('AS at', 'AS at, window_start')} SELECT SUM(n) AS n "
        f"{OF_TEN.replace('TUMBLE', '#TUMBLE')} {BY}",
        "rename it in the subquery with AS",
    ),
    "the same windows of SESSION": (
        f"SELECT SUM(n) AS n FROM ({COUNTS}) GROUP BY #k".replace(
            "TUMBLE(TABLE t", "SESSION(TABLE t PARTITION BY k"
        ),
        "FROM TUMBLE(TABLE q, DESCRIPTOR(window_time)",
    ),
    "a top of keys": (
        "WITH q AS (SELECT k, ts AS at FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k "
        "ORDER BY v) AS r FROM t) WHERE r = 1) SELECT COUNT(*) AS n "
        f"{OF_TEN.replace('q,', '#q,')} {BY}",
        "a top of keys changes them",
    ),
    "a name for no folder": (
        f"{Q.replace('q AS', '`a b` AS', 1)} SELECT SUM(n) AS n "
        f"{OF_TEN.replace('q,', '#`a b`,')} {BY}",
        "it names a folder",
    ),
}


@pytest.mark.parametrize("wrong", MISTAKES)
def test_mistakes_are_told_with_their_place(tables: Any, wrong: str) -> None:
    marked, rule = MISTAKES[wrong]
    marked = " ".join(marked.split())
    place, text = marked.index("#") + 1, marked.replace("#", "")
    with pytest.raises(SqlError, match=re.escape(rule)) as caught:
        gw.sql(text, **tables)
    assert (caught.value.line, caught.value.position) == (1, place)


def test_a_query_runs_once_and_its_check_reads_nothing() -> None:
    table = rows(random.Random(5), 50)
    wanted = gw.sql(CASCADE, t=stream(table)).result()
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(10))
    once = gw.stream(reader).event_time("ts", MONOTONOUS)
    asked = gw.sql(CASCADE, t=once).options(batch_rows=100)
    assert "stream_results" in asked.explain()
    assert rows_of(asked.result()) == rows_of(wanted)
    assert asked.outputs() is asked.outputs()
    assert len(wanted)


CASCADE = f"""WITH q AS ({COUNTS} HAVING COUNT(*) < 5)
    SELECT k, window_start, SUM(n / 2) AS half {OF_TEN} WHERE 1 / n > 0 {BY}, k"""


def test_on_a_batch_it_is_the_same(spark: SparkSession) -> None:
    table = rows(random.Random(9), 200)
    frame = spark.createDataFrame(table)
    for text in (CASCADE, *ALONE):
        ours = gw.sql(text, t=gw.stream(frame).event_time("ts", MONOTONOUS)).result().toArrow()
        wanted = gw.sql(text, t=stream(table)).result()
        assert ours.column_names == wanted.column_names
        assert ours.schema.types == wanted.schema.types
        assert rows_of(ours) == rows_of(wanted)


#: Rows of window functions alone; those of sessions come when these are over.
ALONE = (
    "SELECT * FROM HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND)",
    "SELECT k, v * 2 AS w, window_time FROM "
    "SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), INTERVAL '2' SECOND) WHERE v > 0",
)


@pytest.mark.parametrize("text", quick([CASCADE, *ALONE], nightly=[ALONE[1]]))
def test_on_a_stream_it_is_the_same(spark: SparkSession, tmp_path: Path, text: str) -> None:
    table = rows(random.Random(9), 200)
    end = table.slice(199).set_column(2, "ts", pa.array([10**13]).cast(table.field("ts").type))
    files(tmp_path / "in", [table.slice(0, 120), table.slice(120), end])
    schema = spark.createDataFrame(table).schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    source = gw.stream(reader.parquet(str(tmp_path / "in")))
    waits = gw.WatermarkStrategy.for_bounded_out_of_orderness("1 hour")
    asked = gw.sql(text, t=source.event_time("ts", waits)).options(shards=2, device="cpu")
    out, state = tmp_path / "out", tmp_path / "state"
    query = gw.write_stream(asked.outputs(), out, state, trigger={"availableNow": True})
    assert query.awaitTermination(120)
    found = gw.read_output(spark, out).toArrow()
    wanted = gw.sql(text, t=stream(table)).result()
    if text == ALONE[0]:  # which do not wait for the end of windows
        wanted = gw.sql(text, t=stream(pa.concat_tables([table, end]))).result()
    assert found.column_names == wanted.column_names
    assert rows_of(found) == rows_of(wanted)
    if text == CASCADE:
        other = gw.sql(text.replace("< 5", "< 6"), t=source.event_time("ts", waits))
        with pytest.raises(StateMismatchError, match=r"rows was where .*< 5.* is where .*< 6"):
            gw.write_stream(other.options(shards=2, device="cpu").outputs(), out, state)


def test_a_query_of_with_that_is_used_twice_is_computed_twice(tables: Any) -> None:
    q = f"WITH q AS ({COUNTS})"
    both = (
        f"{q} SELECT a.k AS k, a.n AS n, a.at AS at FROM q AS a JOIN q AS b ON a.k = b.k "
        "AND b.at BETWEEN a.at - INTERVAL '0' SECOND AND a.at + INTERVAL '0' SECOND"
    )
    asked = gw.sql(both, **tables)
    once = gw.sql(f"{q} SELECT k, n, at FROM q WHERE k IS NOT NULL", **tables).result()
    assert rows_of(asked.result()) == rows_of(once)
    assert len(once)
    assert "'q_2'" in asked.explain()
