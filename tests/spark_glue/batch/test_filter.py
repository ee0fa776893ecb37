"""Conditions of aggregates on Spark: expressions, and streams."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

import gpu_windows as gw
from tests.lanes import quick
from tests.planning.queries import rows_of
from tests.spark_glue.stream_runs import (
    ASSIGNERS,
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


@pytest.mark.parametrize("partials", quick(["kernels", "spark"], "spark"))
def test_expressions_are_what_sparks_filter_is(spark: SparkSession, partials: str) -> None:
    cheap, is_x = F.col("v") < 10, F.col("text") == "x"
    frame = spark.createDataFrame(pa.concat_tables(batches())).where("ts is not null")
    made = windowed(frame, gw.TumblingEventTimeWindows.of("20 seconds")).options(partials=partials)
    found = made.aggregate(
        n=gw.count(), cheap=gw.count().filter(cheap), total=gw.sum("v").filter(cheap & is_x),
        top=gw.max(F.col("v") * 2).filter(is_x),
    )  # fmt: skip
    frame.createOrReplaceTempView("filtered_rows")
    wanted = spark.sql(
        "SELECT k, window.start, window.end, count(*), count(*) FILTER (WHERE v < 10),"
        " sum(v) FILTER (WHERE v < 10 AND text = 'x'), max(v * 2) FILTER (WHERE text = 'x')"
        " FROM filtered_rows GROUP BY k, window(ts, '20 seconds')"
    )
    assert rows_of(found.toArrow()) == rows_of(wanted.toArrow())


def test_distinct_is_what_it_is_in_spark(spark: SparkSession) -> None:
    frame = spark.createDataFrame(pa.concat_tables(batches())).where("ts is not null")
    found = windowed(frame, gw.TumblingEventTimeWindows.of("20 seconds")).aggregate(
        n=gw.count(F.col("v")).distinct(), total=gw.sum("v").distinct(),
        mean=gw.mean("v").distinct(),
        spread=gw.stddev("v").distinct(), cheap=gw.sum("v").distinct().filter(F.col("v") < 10),
        texts=gw.count("text").distinct(), rows=gw.count(),
    )  # fmt: skip
    frame.createOrReplaceTempView("rows_of_values")
    wanted = spark.sql(
        "SELECT k, window.start, window.end, count(DISTINCT v), sum(DISTINCT v), avg(DISTINCT v),"
        " stddev(DISTINCT v), sum(DISTINCT v) FILTER (WHERE v < 10), count(DISTINCT text), count(*)"
        " FROM rows_of_values GROUP BY k, window(ts, '20 seconds')"
    )
    assert rows_of(found.toArrow()) == rows_of(wanted.toArrow())


@pytest.mark.parametrize("name", quick(["tumbling", "sessions"], nightly=["sessions"]))
def test_streams(spark: SparkSession, tmp_path: Path, name: str) -> None:
    tables = [
        table.append_column("is_x", pc.equal(table["text"], "x")) for table in batches(3, 200)
    ]
    files(tmp_path / "in", tables)
    source = streamed(spark, tmp_path / "in", tables[0])
    made = windowed(source, ASSIGNERS[name]).with_outputs().aggregate(
        n=gw.count().filter("is_x"), total=gw.sum("v").filter("is_x"),
        last=gw.last("seq").filter("is_x"),
    )  # fmt: skip
    run_to_the_end(made, tmp_path)
    results, _ = expected(made, tables)
    assert results_in(spark, tmp_path) == rows_of(results)
