"""Shards have numbers that Spark puts into different partitions."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.spark_glue.contract.placement import shard_ids, spark_hash

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(("shards", "partitions"), [(1, 1), (1, 8), (4, 4), (5, 4), (200, 200)])
def test_shards_are_spread_evenly(shards: int, partitions: int) -> None:
    ids = shard_ids(shards, partitions)
    assert len(set(ids)) == shards
    assert [spark_hash(number) % partitions for number in ids] == [
        shard % partitions for shard in range(shards)
    ]


def test_more_shards_keep_the_numbers_of_the_first() -> None:
    assert shard_ids(9, 4)[:4] == shard_ids(4, 4)


def test_the_hash_is_spark_s(spark: SparkSession) -> None:
    values = [*range(50), -1, LONG_MIN, LONG_MAX, 1 << 32, -(1 << 32)]
    found = (
        spark.createDataFrame([(v,) for v in values], "v bigint").selectExpr("hash(v)").collect()
    )
    assert [spark_hash(value) for value in values] == [row[0] for row in found]


def test_spark_puts_them_there(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(number,) for number in shard_ids(4, 4)], "v bigint")
    found = frame.repartition(4, "v").selectExpr("spark_partition_id()").collect()
    assert Counter(row[0] for row in found) == Counter(range(4))
