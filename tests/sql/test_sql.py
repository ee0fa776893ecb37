"""Statements: those that were recorded from Flink, random ones, on Arrow tables, Spark, streams."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import gpu_windows as gw
from gpu_windows.errors import QueryError, SqlError
from tests.conformance.__main__ import app
from tests.lanes import quick
from tests.planning.queries import rows_of
from tests.sql.checks import failure_of
from tests.sql.texts import MONOTONOUS, rows, stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GOLDEN = Path(__file__).parents[1] / "golden"
FAMILIES = sorted(path.name for path in GOLDEN.glob("*sql_*") if path.is_dir())
_QUICK = ("sql_interval_join", "sql_misc", "sql_group_window")
#: Those of which many are of one shape.
_NIGHTLY = ("sql_over", "sql_top_n", "sql_rows", "sql_interval_join_on_time", "sql_grouping_sets",
            "sql_version_join_late", "sql_match", "sql_match_random", "sql_match_refused",
            "bounded_sql_match")  # fmt: skip
_TEXT = """
    SELECT UPPER(k) AS kk, window_end, SUM(v) / COUNT(*) AS share, MAX(x) FILTER (WHERE ok) AS m
    FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND) WHERE v IS NOT NULL
    GROUP BY UPPER(k), window_start, window_end HAVING COUNT(*) > 1
"""


@pytest.mark.parametrize("family", quick(FAMILIES, *_QUICK, nightly=_NIGHTLY))
@pytest.mark.timeout(900)
def test_recorded_statements_by_their_text(family: str) -> None:
    arguments = ["--sql", str(GOLDEN / family)]
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    assert " 0 failed" in result.output


@pytest.mark.parametrize(
    "family",
    quick(FAMILIES, nightly=[name for name in FAMILIES if name not in _QUICK]),
)
@pytest.mark.timeout(900)
def test_recorded_statements_through_the_stateful_processor(family: str) -> None:
    arguments = ["--sql", "--runner", "streaming", str(GOLDEN / family)]
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(900)
def test_recorded_statements_in_a_batch() -> None:
    families = (str(GOLDEN / name) for name in FAMILIES if name.startswith("bounded_"))
    arguments = ["--sql", "--runner", "batch", *families]
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output


def test_random_statements() -> None:
    failures = [failure for seed in range(80) if (failure := failure_of(seed)) is not None]
    assert failures == []


@pytest.fixture(scope="module")
def table() -> pa.Table:
    import random

    return rows(random.Random(22), 300)


def test_on_spark_it_is_the_same(spark: SparkSession, table: pa.Table) -> None:
    frame = spark.createDataFrame(table)
    ours = gw.sql(_TEXT, t=gw.stream(frame).event_time("ts", MONOTONOUS)).result().toArrow()
    wanted = gw.sql(_TEXT, t=stream(table)).result()
    assert rows_of(ours) == rows_of(wanted)
    assert ours.schema.types == wanted.schema.types


@pytest.mark.thorough
def test_on_a_stream_it_is_the_same(spark: SparkSession, table: pa.Table, tmp_path: Path) -> None:
    pq.write_table(table, _made(tmp_path / "in") / "rows.parquet")
    schema = spark.createDataFrame(table).schema
    rows_in = spark.readStream.schema(schema).parquet(str(tmp_path / "in"))
    watermarks = gw.WatermarkStrategy.for_bounded_out_of_orderness("1 hour")
    asked = gw.sql(_TEXT, t=gw.stream(rows_in).event_time("ts", watermarks)).outputs()
    end = table.slice(len(table) - 1).set_column(
        2, "ts", pa.array([10**13], pa.int64()).cast(table.schema.field("ts").type)
    )
    pq.write_table(end, tmp_path / "in" / "rows2.parquet")
    once = {"availableNow": True}
    query = gw.write_stream(asked, tmp_path / "out", tmp_path / "state", trigger=once)
    assert query.awaitTermination(120)
    found = gw.read_output(spark, tmp_path / "out").toArrow()
    assert rows_of(found) == rows_of(gw.sql(_TEXT, t=stream(table)).result())


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_a_sink_that_tells_results_apart_wants_what_tells_them(
    spark: SparkSession, table: pa.Table, tmp_path: Path
) -> None:
    schema = spark.createDataFrame(table).schema
    rows_in = spark.readStream.schema(schema).parquet(str(_made(tmp_path / "in")))
    of = gw.stream(rows_in).event_time("ts", MONOTONOUS).key_by("k")
    windowed = of.window(gw.TumblingEventTimeWindows.of("1 minute")).with_firing_columns()
    outputs = windowed.with_outputs().aggregate(n=gw.count())
    sink = gw.upsert(lambda *given: None)
    with pytest.raises(QueryError, match=r"apart: .*got window_start, firing, timing"):
        gw.write_stream(outputs.select("k", "window_end", "n"), sink, tmp_path / "state")


def test_explain_is_python_that_gives_the_same(table: pa.Table) -> None:
    query = gw.sql(_TEXT, t=stream(table))
    text = query.explain().partition("\n\n")[0]
    outputs = eval(f"({text})", {"gw": gw, "t": stream(table)})  # noqa: S307
    assert rows_of(outputs.result()) == rows_of(query.result())


def test_results_are_chosen_without_sql(table: pa.Table) -> None:
    windowed = stream(table).where("v > 0").with_columns(w="v * 2").key_by("k")
    outputs = (
        windowed.window(gw.TumblingEventTimeWindows.of("1 minute"))
        .with_outputs()
        .aggregate(s=gw.sum("w"))
    )
    found = outputs.select("k", half="s / 2", where="s > 10").result()
    assert found.column_names == ["k", "half"]
    assert all(half > 5 for half in found["half"].to_pylist())
    with pytest.raises(SqlError, match="there is no such column"):
        outputs.select(half="zz / 2")
    with pytest.raises(QueryError, match="the event time is chosen by event_time"):
        stream(table).with_columns(ts="v")
