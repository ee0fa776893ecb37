"""Selected rows of batch DataFrames are selected by Spark: none crosses to Python."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import Observation

import gpu_windows as gw
from tests.planning.queries import rows_of
from tests.spark_glue.stream_runs import WATERMARKS, batches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = batches(1, 200)[0]


def select(rows: Any) -> gw.typing.Outputs:
    outputs: gw.typing.Outputs = gw.stream(rows).event_time("ts", WATERMARKS).select(
        {"k": "k + 1"}, "ts", "seq", kind="CASE WHEN k < 5 THEN text END", where="v > 3"
    )  # fmt: skip
    return outputs


def test_rows_are_those_of_a_table(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    outputs = select(spark.createDataFrame(TABLE))
    found = outputs.result()
    assert rows_of(found.toArrow()) == rows_of(select(TABLE).result())
    capsys.readouterr()
    found.explain()
    plan = capsys.readouterr().out
    assert "Scan" in plan
    assert "InArrow" not in plan
    assert "Exchange" not in plan
    assert "none crosses to Python" in outputs.explain()


def test_nothing_is_late_or_rejected_and_rows_are_counted(spark: SparkSession) -> None:
    outputs = select(spark.createDataFrame(TABLE))
    local = select(TABLE)
    assert outputs.late().count() == outputs.rejected().count() == 0
    assert outputs.rejected().columns[-1] == "rejection_reason"
    assert outputs.metrics().toArrow().to_pylist() == local.metrics().to_pylist()
    observation = Observation()
    outputs.result(observation).count()  # type: ignore[call-arg]
    assert observation.get["rows"] == len(local.result())


def test_odd_names_and_types_that_cannot_cross(spark: SparkSession) -> None:
    frame = spark.sql("SELECT 1 AS `a.b`, 2 AS `c``d`, INTERVAL 3 MONTHS AS `ä ö`, NULL AS n")
    found = gw.stream(frame).select("c`d", "a.b", "n", "ä ö", twice="`a.b` * 2").result()
    assert found.columns == ["c`d", "a.b", "n", "ä ö", "twice"]
    assert found.schema["ä ö"].dataType == frame.schema["ä ö"].dataType
    row = found.select("`c``d`", "`a.b`", "twice").first()
    assert tuple(row or ()) == (2, 1, 2)


def test_windows_over_selected_rows(spark: SparkSession) -> None:
    hours = gw.TumblingEventTimeWindows.of("20 seconds")

    def count(rows: Any) -> Any:
        picked = gw.stream(rows).event_time("ts", WATERMARKS).select("k", where="v > 3")
        timed = gw.stream_results(picked)
        return timed.key_by("k").window(hours).aggregate(n=gw.count())

    assert rows_of(count(spark.createDataFrame(TABLE)).toArrow()) == rows_of(count(TABLE))


@pytest.mark.parametrize("by_spark", [True, False])
def test_files_are_read_and_written_by_spark(
    spark: SparkSession, tmp_path: Path, by_spark: bool
) -> None:
    pq.write_table(TABLE, tmp_path / "in.parquet")
    scan = gw.scan(tmp_path / "in.parquet", spark if by_spark else None)
    outputs = select(scan)
    assert outputs.write_parquet(tmp_path / "out").rows == len(select(TABLE).result())
    back = gw.read_output(spark, tmp_path / "out").toArrow()
    assert rows_of(back) == rows_of(select(TABLE).result())
    if by_spark:
        assert "write_parquet lets Spark write" in outputs.explain()
