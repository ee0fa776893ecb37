"""How many partitions a shuffle of a session has, and how many shards a batch query."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_windows.vocabulary.options import MAX_SHARDS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Setting of the number of partitions of a shuffle.
PARTITIONS = "spark.sql.shuffle.partitions"


def default_shards(session: SparkSession) -> int:
    """Return four shards for each of Spark's shuffle partitions.

    Shards are small integers: with one per partition, their hashes would leave partitions empty.
    """
    return min(4 * shuffle_partitions(session), MAX_SHARDS)


def shuffle_partitions(session: SparkSession) -> int:
    """Return the number of partitions of a shuffle."""
    return int(session.conf.get(PARTITIONS) or 200)
