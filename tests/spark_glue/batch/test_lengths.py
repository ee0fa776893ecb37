"""Windows of several lengths on Spark: partials by either, and streams that go on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

import gpu_windows as gw
from tests.lanes import quick
from tests.planning.queries import rows_of
from tests.spark_glue.stream_runs import (
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

LENGTHS = gw.MultiLengthEventTimeWindows.of("5 seconds", "20 seconds", "1 minute")


@pytest.mark.parametrize("partials", quick(["kernels", "spark"], "spark"))
def test_a_batch(spark: SparkSession, partials: str) -> None:
    table = pa.concat_tables(batches())
    aggregates = {"n": gw.count(), "total": gw.sum("v"), "top": gw.max("v")}
    local = windowed(table, LENGTHS).changed_keys().aggregate(**aggregates)
    made = windowed(spark.createDataFrame(table), LENGTHS).options(partials=partials)
    assert rows_of(made.changed_keys().aggregate(**aggregates).toArrow()) == rows_of(local)


def test_an_expression_is_one_column_however_many_lengths(spark: SparkSession) -> None:
    frame = spark.createDataFrame(pa.concat_tables(batches()))
    double, cheap = gw.sum(F.col("v") * 2), gw.max("v").filter(F.col("v") < 10)
    plans = [
        windowed(frame, windows).with_outputs().aggregate(double=double, cheap=cheap).plan
        for windows in (LENGTHS, gw.MultiLengthEventTimeWindows.of("5 seconds"))
    ]
    of_three, of_one = ((plan.partials, plan.input_columns) for plan in plans)
    assert of_three == of_one


@pytest.mark.parametrize("changed", quick([False, True]))
def test_a_stream(spark: SparkSession, tmp_path: Path, changed: bool) -> None:
    tables = batches(3, 200)
    files(tmp_path / "in", tables)
    made = windowed(streamed(spark, tmp_path / "in", tables[0]), LENGTHS)
    asked = (
        (made.changed_keys() if changed else made)
        .with_outputs()
        .aggregate(n=gw.count(), total=gw.sum("v"), last=gw.last("seq"))
    )
    run_to_the_end(asked, tmp_path)
    results, _ = expected(asked, tables)
    assert results_in(spark, tmp_path) == rows_of(results)
