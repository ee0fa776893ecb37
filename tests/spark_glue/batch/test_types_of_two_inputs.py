"""Columns of two inputs of different widths on Spark: as on the local runner."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import gpu_windows as gw
from gpu_windows.errors import ColumnTypeError

WATERMARKS = gw.WatermarkStrategy.for_monotonous_timestamps()
MINUTE = gw.TumblingEventTimeWindows.of("1 minute")
TIME = "timestamp_seconds(0)"


def frame(spark: SparkSession, key: str, time: str, value: str) -> Any:
    return spark.sql(
        f"SELECT CAST(k AS {key}) AS k, {TIME} AS {time}, k AS {value} FROM VALUES (1), (2) t(k)"
    )


def keyed(rows: Any, time: str) -> gw.typing.KeyedStream:
    return gw.stream(rows).event_time(time, WATERMARKS).key_by("k")


@pytest.mark.thorough
def test_joins_and_unions_widen(spark: SparkSession) -> None:
    one, other = frame(spark, "INT", "lt", "v"), frame(spark, "DECIMAL(5,1)", "rt", "w")
    joined = keyed(one, "lt").interval_join(keyed(other, "rt")).between("0 s", "0 s")
    found = joined.select(["v"], ["w"])
    assert found.schema["k"].dataType.simpleString() == "decimal(11,1)"
    assert sorted((int(r["k"]), r["left_v"], r["right_w"]) for r in found.collect()) == [
        (1, 1, 1),
        (2, 2, 2),
    ]
    parts = [
        gw.stream(frame(spark, kind, "ts", "v")).event_time("ts", WATERMARKS)
        for kind in ("INT", "BIGINT", "TINYINT")
    ]
    summed = (
        parts[0]
        .union(*parts[1:])
        .window_all(MINUTE)
        .with_outputs()
        .aggregate(s=gw.sum("k"), m=gw.max("k"))
    )
    assert summed.result().select("s", "m").collect() == [(9, 2)]
    assert summed.result().schema["m"].dataType.simpleString() == "bigint"
    with pytest.raises(ColumnTypeError, match="a key has the same type"):
        keyed(one, "lt").interval_join(keyed(frame(spark, "STRING", "rt", "w"), "rt"))


def test_scans_widen_in_tasks(spark: SparkSession, tmp_path: Any) -> None:
    for name, kind, time in (("a", "INT", "lt"), ("b", "BIGINT", "rt")):
        frame(spark, kind, time, "v").write.parquet(str(tmp_path / name))
    sides = [gw.scan(str(tmp_path / name), spark) for name in ("a", "b")]
    outputs = keyed(sides[0], "lt").interval_join(keyed(sides[1], "rt")).between("0 s", "0 s")
    found = outputs.with_outputs().select(["v"], ["v"]).result()
    rows = sorted((r["k"], r["left_v"], r["right_v"]) for r in found.collect())
    assert rows == [(1, 1, 1), (2, 2, 2)]
    assert found.schema["k"].dataType.simpleString() == "bigint"


def test_forms_of_files_are_those_that_spark_reads(spark: SparkSession, tmp_path: Any) -> None:
    import pyarrow.parquet as pq

    columns = {
        "k": pa.array(["a", "b", "a"]).dictionary_encode(),
        "ts": pa.array([0, 1, 2]).cast(pa.timestamp("ms", "UTC")),
        "u": pa.array([2**32 - 1, 1, 1], pa.uint32()),
        "w": pa.array([2**64 - 1, 1, 1], pa.uint64()),
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    scans = [
        gw.scan(str(tmp_path)),
        gw.scan(str(tmp_path), spark),
        spark.read.parquet(str(tmp_path)),
    ]
    found = []
    for each in scans:
        outputs = (
            keyed(each, "ts")
            .window(MINUTE)
            .with_outputs()
            .aggregate(u=gw.sum("u"), w=gw.first("w"), n=gw.count())
        )
        rows: Any = outputs.result()
        table = rows if isinstance(rows, pa.Table) else rows.toArrow()
        found.append(sorted((r["k"], r["u"], r["w"], r["n"]) for r in table.to_pylist()))
    assert found[0] == found[1] == found[2] == [("a", 2**32, 2**64 - 1, 2), ("b", 1, 1, 1)]
