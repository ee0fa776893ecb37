"""Vectorised process functions on Spark give what they give without it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.planning.own_columns import REASON
from tests.operators.process.vector_functions import (
    Inactive,
    Totals,
    VectorChained,
    VectorInactive,
)
from tests.planning.queries import counters_of, rows_of
from tests.spark_glue.stream_runs import (
    SECOND,
    WATERMARKS,
    batches,
    expected,
    files,
    results_in,
    run_to_the_end,
    streamed,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def processed(source: Any, function: Any) -> gw.typing.Outputs:
    timed = gw.stream(source).event_time("ts", WATERMARKS)
    return (
        timed.key_by("k")
        .with_outputs()
        .process(function, ["v"], output=function.output, arrival_order=["seq"], shards=5)
    )


def tables() -> list[pa.Table]:
    """Rows of four minutes, with integers and without times here and there."""
    rng, found = np.random.default_rng(7), batches(rows=200)
    values = [pa.array(rng.integers(0, 30, len(t)), mask=rng.random(len(t)) < 0.1) for t in found]
    return [t.set_column(2, "v", each) for t, each in zip(found, values, strict=True)]


@pytest.mark.thorough
def test_a_batch(spark: SparkSession) -> None:
    table = pa.concat_tables(tables())
    frame = spark.createDataFrame(table)
    for function in (VectorInactive(4 * SECOND), VectorChained(), Totals()):
        found, wanted = processed(frame, function), processed(table, function)
        results = found.result().toArrow()
        assert rows_of(results) == rows_of(wanted.result())
        assert len(results) >= 20
        assert sorted(found.rejected().toArrow()["seq"].to_pylist()) == sorted(
            wanted.rejected()["seq"].to_pylist()
        )
        assert counters_of(found.metrics()).rows == len(table)
    for tag in VectorChained.side_outputs:
        side = processed(frame, VectorChained()).side(tag).toArrow()
        assert rows_of(side) == rows_of(processed(table, VectorChained()).side(tag))
        assert len(side) > 100


@pytest.mark.thorough
def test_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    """Keys come again in each micro-batch; the other kind of function gives the same."""
    found = batches()
    files(tmp_path / "in", found)
    outputs = processed(streamed(spark, tmp_path / "in"), VectorInactive(4 * SECOND))
    run_to_the_end(outputs, tmp_path)
    got = results_in(spark, tmp_path)
    results, late = expected(outputs, found)
    by_row, _ = expected(processed(found[0], Inactive(4 * SECOND)), found)
    assert got == rows_of(results) == rows_of(by_row)
    assert {row["what"] for row in results.to_pylist()} == {"row", "quiet"}
    back = gw.read_output(spark, tmp_path / "out", "late").toArrow()
    assert set(back[REASON].to_pylist()) == set(late[REASON].to_pylist()) == {"null_timestamp"}
