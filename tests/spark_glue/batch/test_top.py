"""The first rows of windows on Spark batch are those that its own row_number finds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

import gpu_windows as gw
from gpu_windows.operators.columns.top_n import select_top_results
from tests.lanes import quick
from tests.planning.queries import rows_of
from tests.spark_glue.stream_runs import (
    WATERMARKS,
    batches,
    expected,
    files,
    results_in,
    run_to_the_end,
    streamed,
    windowed,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOPS = gw.SlidingEventTimeWindows.of("1 minute", "20 seconds")


def test_it_is_what_row_number_gives(spark: SparkSession) -> None:
    frame = spark.createDataFrame(pa.concat_tables(batches())).where("ts is not null")
    made = windowed(frame, HOPS)
    expression = (F.col("v") % 5).alias("rest")
    found = made.top(3, [expression, "seq"], descending=[True, False], columns=["seq", expression])
    frame.createOrReplaceTempView("rows_in_windows")
    wanted = spark.sql(
        "SELECT k, start, end, seq, rest, number FROM (SELECT *, row_number() OVER "
        "(PARTITION BY k, start ORDER BY rest DESC, seq) AS number FROM (SELECT k, seq, v % 5 AS "
        "rest, explode(array(window(ts, '1 minute', '20 seconds'))) AS w, w.start, w.end "
        "FROM rows_in_windows)) WHERE number <= 3"
    )
    assert found.columns == ["k", "window_start", "window_end", "seq", "rest", "row_number"]
    assert rows_of(found.toArrow()) == rows_of(wanted.toArrow())


RANKED = (
    "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY start, end ORDER BY total DESC, k) "
    "AS number FROM (SELECT k, window.start, window.end, count(*), sum(seq) AS total "
    "FROM rows_to_rank GROUP BY k, window(ts, '1 minute', '20 seconds'))) WHERE number <= 3"
)


@pytest.mark.parametrize("partials", quick(["kernels", "spark"], "kernels"))
def test_keys_are_ranked_as_row_number_does(spark: SparkSession, partials: str) -> None:
    frame = spark.createDataFrame(pa.concat_tables(batches())).where("ts is not null")
    frame.createOrReplaceTempView("rows_to_rank")
    made = windowed(frame, HOPS).options(partials=partials).top_keys(3, "total")
    found = made.aggregate(n=gw.count(), total=gw.sum("seq"))
    assert found.schema["row_number"].nullable is False
    assert rows_of(found.toArrow()) == rows_of(spark.sql(RANKED).toArrow())


@pytest.mark.thorough
def test_on_a_stream_all_keys_of_a_window_are_ranked_together(
    spark: SparkSession, tmp_path: Path
) -> None:
    tables = batches(4, 300)
    files(tmp_path / "in", tables)
    stream = streamed(spark, tmp_path / "in")

    def outputs(**ranking: Any) -> gw.typing.Outputs:
        of = windowed(stream, HOPS)
        of = of.top_keys(**ranking) if ranking else of
        return of.with_outputs().aggregate(n=gw.count(), total=gw.sum("seq"))

    made = outputs(count=3, by="total")
    run_to_the_end(made, tmp_path)
    every = outputs()
    results, late = expected(every, tables)
    query = made.plan.query
    assert query.ranking is not None
    wanted = select_top_results(query.ranking, query.keys, query.window_columns, results)
    assert len(wanted) > 20
    assert results_in(spark, tmp_path) == rows_of(wanted)
    back = gw.read_output(spark, tmp_path / "out", "late")
    assert back.count() == len(late)


def test_all_columns_are_those_of_the_user(spark: SparkSession, tmp_path: Path) -> None:
    files(tmp_path / "in", batches(1, 10))
    stream = streamed(spark, tmp_path / "in")
    ts = F.col("ts") + F.expr("INTERVAL 1 SECOND")
    one, other = (gw.stream(stream).event_time("ts", WATERMARKS) for _ in range(2))
    timed = (one.union(other), gw.stream(stream).event_time(ts, WATERMARKS))
    for each in timed:
        made: Any = each.key_by("k").window(HOPS).with_outputs().top(1, "v")
        assert made._analyzed_results().columns == [
            *("k", "window_start", "window_end", "ts", "v", "text", "seq", "row_number")
        ]
