"""The first rows of keys on streaming DataFrames: what is written, read again, and upserted."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

import gpu_windows as gw
from gpu_windows.errors import StateMismatchError, UnsupportedQueryError
from tests.spark_glue.stream_runs import batches, files, run_to_the_end, streamed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

COLUMNS = ["v", "seq", "ts"]


def topped(source: Any, **asked: Any) -> gw.typing.Outputs:
    keyed = gw.stream(source).key_by("k")
    said = {"columns": COLUMNS, "arrival_order": ["seq"], "shards": 3, **asked}
    return keyed.with_outputs().top(3, ["v", "text"], descending=[True, False], **said)


def first(rows: Iterable[dict[str, Any]]) -> dict[Any, int]:
    """The first rows by key and number."""
    by_key: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        by_key.setdefault(row["k"], []).append(row)
    return {
        (key, number): row["seq"]
        for key, rows_of in by_key.items()
        for number, row in enumerate(
            sorted(rows_of, key=lambda row: (-row["v"], row["text"], row["seq"]))[:3], 1
        )
    }


@pytest.mark.thorough
def test_what_is_written_are_the_changes_of_a_table(spark: SparkSession, tmp_path: Path) -> None:
    """Stopped after two micro-batches, and gone on with; a batch job gives the table."""
    tables = batches()
    files(tmp_path / "in", tables[:2])
    run_to_the_end(topped(streamed(spark, tmp_path / "in"), number=None), tmp_path)
    files(tmp_path / "in", tables)
    run_to_the_end(topped(streamed(spark, tmp_path / "in"), number=None), tmp_path)
    changes = gw.read_output(spark, tmp_path / "out")
    assert (
        changes.schema.simpleString()
        == "struct<k:bigint,v:double,seq:bigint,ts:timestamp,change:string>"
    )
    rows = changes.toArrow().to_pylist()
    inserted, deleted = (
        {row["seq"] for row in rows if row["change"] == change} for change in ("insert", "delete")
    )
    everything = [row for table in tables for row in table.to_pylist()]
    wanted = first(everything)
    assert inserted > deleted > set()
    assert inserted - deleted == {*wanted.values()}
    whole = spark.createDataFrame(everything, schema=streamed(spark, tmp_path / "in").schema)
    got = topped(whole).result().toArrow().to_pylist()
    assert {(row["k"], row["row_number"]): row["seq"] for row in got} == wanted
    by_other = gw.stream(whole).key_by((F.col("k") % 2).alias("k")).top(1, "v")  # has its name
    assert by_other.columns == ["k", "ts", "v", "text", "seq", "row_number", "change"]
    with pytest.raises(StateMismatchError, match=r"top\.number was not there, is row_number"):
        run_to_the_end(topped(streamed(spark, tmp_path / "in")), tmp_path)


@pytest.mark.thorough
def test_upsert_keeps_the_table(spark: SparkSession, tmp_path: Path) -> None:
    tables = batches(3, 200)
    files(tmp_path / "in", tables)
    table: dict[Any, int] = {}

    def merge(rows: DataFrame, on: tuple[str, ...], number: int) -> None:
        del number
        found = rows.collect()
        assert len({row[name] for row in found for name in on}) > 1
        for row in found:
            key = tuple(row[name] for name in on)
            assert (key in table) == (row.change != "insert")
            table[key] = row.seq

    outputs = topped(streamed(spark, tmp_path / "in"))
    query = gw.write_stream(
        outputs, gw.upsert(merge), tmp_path / "state", trigger={"availableNow": True}
    )
    query.awaitTermination()
    assert table == first(row for each in tables for row in each.to_pylist())
    with pytest.raises(UnsupportedQueryError, match="leave out number=None"):
        gw.write_stream(
            topped(streamed(spark, tmp_path / "in"), number=None), gw.upsert(merge), tmp_path / "s"
        )
