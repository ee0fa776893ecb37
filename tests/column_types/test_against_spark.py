"""Queries over random schemas give what Spark's own give of the same rows, types included."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.column_types.against_spark import Runner, differing, try_seed
from tests.column_types.runners import here, on_a_shard, on_spark
from tests.lanes import quick

WANTED = pa.table({"i": [1, 2], "sum_v0": [0.5, None], "min_v1": ["a", "b"]})
#: Results that are not the wanted one, and what is reported.
OTHERS: dict[str, Callable[[pa.Table], pa.Table]] = {
    "columns": lambda table: table.drop_columns(["i"]),
    "is int32": lambda table: table.set_column(0, "i", pa.array([1, 2], pa.int32())),
    "1 rows, not 2": lambda table: table.slice(1),
    "sum_v0 is 0.25": lambda table: table.set_column(1, "sum_v0", pa.array([0.25, None])),
    "sum_v0 is nan": lambda table: table.set_column(1, "sum_v0", pa.array([float("nan"), None])),
    "min_v1 is None": lambda table: table.set_column(2, "min_v1", pa.array([None, "b"])),
}


def test_the_same_rows_in_another_order_do_not_differ() -> None:
    assert differing(WANTED.take(pa.array([1, 0])), WANTED, ("i",)) == ""


@pytest.mark.parametrize("shown", OTHERS)
def test_what_differs_is_reported(shown: str) -> None:
    assert shown in differing(OTHERS[shown](WANTED), WANTED, ("i",))


def test_decimals_differ_by_their_last_digit() -> None:
    one, other = (pa.table({"i": [1], "v": [Decimal(digits)]}) for digits in ("1.10", "1.11"))
    assert "v is Decimal('1.10')" in differing(one, other, ("i",))


@pytest.mark.parametrize("seed", quick(range(4)))
def test_some_schemas(spark: SparkSession, seed: int) -> None:
    assert_as_spark(spark, seed, {"local": here, "a shard": on_a_shard})


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(100, 140))
def test_schemas(spark: SparkSession, seed: int) -> None:
    runners: dict[str, Runner] = {"local": here, "a shard": partial(on_a_shard, rows=7)}
    if seed % 4 == 0:
        runners["Spark"] = on_spark
    assert_as_spark(spark, seed, runners)


def assert_as_spark(spark: SparkSession, seed: int, runners: dict[str, Runner]) -> None:
    trial = try_seed(seed, spark, runners)
    assert not trial.wrong, (trial.kind, trial.schema)
