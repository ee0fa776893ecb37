"""Aggregates over frames on streaming DataFrames: what is written is what one operator gives."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import StateMismatchError, UnsupportedQueryError
from gpu_windows.planning.own_columns import REASON
from tests.lanes import quick
from tests.spark_glue.stream_runs import (
    WATERMARKS,
    batches,
    expected,
    files,
    over_outputs,
    run_to_the_end,
    streamed,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

KINDS = ("time", "rows", "from the first", "to come")


def rows_of(table: pa.Table) -> Counter[Any]:
    """Return rows as values; times in ticks, floats as they are for all are sums of quarters."""
    at = table.schema.get_field_index("ts")
    ticks = table.set_column(at, "ts", table.column(at).cast(pa.int64()))
    return Counter(zip(*(column.to_pylist() for column in ticks.columns), strict=True))


@pytest.mark.parametrize("kind", quick(KINDS, nightly=["time", "to come"]))
def test_what_is_written_is_what_one_operator_gives(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    tables = batches()
    files(tmp_path / "in", tables)
    outputs = over_outputs(kind, streamed(spark, tmp_path / "in"))
    run_to_the_end(outputs, tmp_path)
    results, late = expected(outputs, tables)
    given = gw.read_output(spark, tmp_path / "out")
    assert given.schema["ts"].dataType.simpleString() == "timestamp"
    assert rows_of(given.toArrow()) == rows_of(results)
    assert len(results) > 500
    back = gw.read_output(spark, tmp_path / "out", "late").toArrow()
    assert sorted(back["seq"].to_pylist()) == sorted(late["seq"].to_pylist())
    assert {"late", "null_timestamp"} == {*late[REASON].to_pylist()}


@pytest.mark.thorough
def test_it_goes_on_from_its_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    tables = batches()
    outputs = over_outputs("time", streamed(spark, _with(tmp_path / "in", tables[:2])))
    run_to_the_end(outputs, tmp_path)
    files(tmp_path / "in", tables)
    run_to_the_end(over_outputs("time", streamed(spark, tmp_path / "in")), tmp_path)
    results, _ = expected(outputs, tables)
    assert rows_of(gw.read_output(spark, tmp_path / "out").toArrow()) == rows_of(results)


def _with(folder: Path, tables: list[pa.Table]) -> Path:
    files(folder, tables)
    return folder


@pytest.mark.thorough
def test_another_frame_is_another_query(spark: SparkSession, tmp_path: Path) -> None:
    files(tmp_path / "in", batches(1, 50))
    source = streamed(spark, tmp_path / "in")
    run_to_the_end(over_outputs("time", source), tmp_path)
    with pytest.raises(StateMismatchError, match="over"):
        run_to_the_end(over_outputs("rows", source), tmp_path)


def test_what_streams_cannot_have(spark: SparkSession, tmp_path: Path) -> None:
    files(tmp_path / "in", batches(1, 5))
    keyed = gw.stream(streamed(spark, tmp_path / "in")).event_time("ts", WATERMARKS).key_by("k")
    with pytest.raises(UnsupportedQueryError, match="a key has no last row"):
        keyed.over(gw.Range("1 minute", None)).with_outputs().aggregate(n=gw.count())
    with pytest.raises(UnsupportedQueryError, match="later rows have not come yet"):
        keyed.over().with_outputs().aggregate(ahead=gw.lead("v"))
    with pytest.raises(UnsupportedQueryError, match="ends with the row"):
        keyed.over(gw.Rows(None, -3)).with_outputs().aggregate(n=gw.count())
    with pytest.raises(UnsupportedQueryError, match="upsert keeps one result"):
        gw.write_stream(
            keyed.over(gw.Rows(1)).with_outputs().aggregate(n=gw.count()),
            gw.upsert(lambda results, columns, number: None),
            tmp_path / "state",
        )
