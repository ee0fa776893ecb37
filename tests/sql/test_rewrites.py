"""Statements that are rewritten: as Flink answered them, on Arrow tables and on Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from tests.lanes import quick
from tests.spark_glue.stream_runs import files
from tests.sql.rewrites import ask, of_flink, of_ours, scenarios, tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORDED = scenarios("bounded_rewrites")
ON_SPARK = [*RECORDED]
STREAMED = scenarios("rewrites")
#: Whose rows do not wait for the end of windows, that of the last micro-batch neither.
AT_ONCE = ("names_of_expressions", "names_twice", "names_without_as_twice")
ON_STREAMS = [name for name in STREAMED if name not in AT_ONCE]
_FEW = ("interval_left_where", "names_without_as")
_MANY = [name for name in ON_STREAMS if name not in _FEW]


@pytest.mark.parametrize("name", RECORDED)
def test_on_arrow_tables_it_is_what_flink_gives(name: str) -> None:
    scenario = json.loads(RECORDED[name].read_text())
    assert scenario["expected"]
    assert of_ours(ask(scenario).result()) == of_flink(scenario)


@pytest.mark.parametrize("name", quick(ON_SPARK, *ON_SPARK[::8]))
def test_on_a_batch_it_is_what_flink_gives(spark: SparkSession, name: str) -> None:
    scenario = json.loads(RECORDED[name].read_text())
    found = ask(scenario, spark.createDataFrame).result().toArrow()
    assert of_ours(found) == of_flink(scenario)


@pytest.mark.parametrize("name", quick(ON_STREAMS, _FEW[0], nightly=_MANY))
def test_on_a_stream_it_is_what_flink_gives(spark: SparkSession, tmp_path: Path, name: str) -> None:
    scenario = json.loads(STREAMED[name].read_text())
    streams = {
        each: _stream(spark, tmp_path / each, rows) for each, rows in tables(scenario).items()
    }
    asked = gw.sql(scenario["sql"], **streams).options(shards=2, device="cpu")
    out, once = tmp_path / "out", {"availableNow": True}
    query = gw.write_stream(asked.outputs(), out, tmp_path / "state", trigger=once)
    assert query.awaitTermination(120)
    assert of_ours(gw.read_output(spark, out).toArrow()) == of_flink(scenario)


def _stream(spark: SparkSession, folder: Path, rows: pa.Table) -> Any:
    """Return rows as a stream of three micro-batches, the last of which ends all windows."""
    time = rows.schema.get_field_index("rt")
    end = rows.slice(0, 1).set_column(time, "rt", pa.array([10**13]).cast(rows.field("rt").type))
    files(folder, [rows.slice(0, len(rows) // 2), rows.slice(len(rows) // 2), end])
    reader = spark.readStream.schema(spark.createDataFrame(rows).schema)
    source = reader.option("maxFilesPerTrigger", 1).parquet(str(folder))
    waits = gw.WatermarkStrategy.for_bounded_out_of_orderness("1 hour")
    return gw.stream(source).event_time("rt", waits)
