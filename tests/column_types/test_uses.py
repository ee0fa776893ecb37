"""The table of types and uses, walked cell by cell: on the local runner, shards, and Spark."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import gpu_windows as gw
from gpu_windows.aggregates.definitions import DEFINITIONS
from gpu_windows.column_types.logical import LOGICAL, name_of, remedy_of
from tests.column_types.page import PAGE, page_text
from tests.column_types.runners import on_a_shard
from tests.column_types.uses import FORMS, NOT_IN_SPARK, USES
from tests.column_types.walk import STEPS, outcome, rows_here, table_of, values_of
from tests.lanes import quick

TYPES = [*LOGICAL.values(), *FORMS]
#: What Spark has; those that go the way of BIGINT, DOUBLE or STRING are nightly.
ON_SPARK = [name for name in LOGICAL if name not in NOT_IN_SPARK]
NIGHTLY = ["TINYINT", "SMALLINT", "INT", "FLOAT", "BOOLEAN", "DATE", "BINARY"]


def expected(use: str, dtype: pa.DataType) -> str:
    return "right" if name_of(dtype) in USES[use].takes else "refused"


def test_every_use_is_walked() -> None:
    assert STEPS.keys() == USES.keys()
    assert {name for use in USES.values() for name in use.takes} == LOGICAL.keys()


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_here(dtype: pa.DataType) -> None:
    for use in USES:
        found = outcome(use, dtype, rows_here)
        assert found.split(":")[0] == expected(use, dtype), (use, found)


def rows_of_shard(outputs: Any) -> list[dict[str, Any]]:
    """Return what a shard of a stream gives in micro-batches of a row each."""
    found: list[dict[str, Any]] = on_a_shard(outputs).to_pylist()
    return found


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_on_the_shard_of_a_stream(dtype: pa.DataType) -> None:
    for use in USES:
        found = outcome(use, dtype, rows_of_shard)
        assert found.split(":")[0] == expected(use, dtype), (use, found)


@pytest.mark.parametrize("name", quick(ON_SPARK, nightly=NIGHTLY))
def test_on_spark(name: str, spark: SparkSession) -> None:
    """All aggregates of a type in one query, then the other uses."""
    dtype = LOGICAL[name]
    frame = spark.createDataFrame(table_of(dtype))
    if name == "TIMESTAMP_NTZ":  # of which Spark makes instants of the session's zone
        assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
        frame = frame.withColumn("v", frame["v"].cast("timestamp_ntz"))

    def rows_of(outputs: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = outputs.result().toArrow().to_pylist()
        return found

    for use in USES:
        if use == "event_time" and name == "BIGINT":
            continue  # of Arrow tables alone
        found = outcome(use, dtype, rows_of, frame)
        assert found.split(":")[0] == expected(use, dtype), (use, found)


def test_the_page_is_that_of_the_table() -> None:
    rule = "python -m tests.column_types.page writes it"
    assert PAGE.read_text("utf-8") == page_text(), rule


def test_values_have_a_null_and_one_that_comes_twice() -> None:
    for dtype in TYPES:
        values = values_of(dtype)
        assert values.count(None) == 1
        assert values[0] == values[-1] != values[2]
        assert table_of(dtype).schema.field("v").type == dtype
    assert gw.stream(table_of(pa.uint64())).source.schema.field("v").type == pa.decimal128(20, 0)


def test_every_aggregate_has_a_remedy_unless_it_takes_all() -> None:
    for name, definition in DEFINITIONS.items():
        takes_all = all(map(definition.accepts, LOGICAL.values()))
        assert bool(remedy_of(name)) != takes_all
