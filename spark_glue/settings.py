"""Settings of Spark with which rows cross to Python quickly."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The rows, and the bytes, of the Arrow batches between the JVM and Python.
ARROW_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
ARROW_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"

#: From this limit on Spark does not measure a batch. Below it measures the batch after every row,
#: which takes longer than writing the row: crossing then takes two to three times as long.
UNMEASURED = 2**31 - 1

#: Where the state of streams is kept, and by what.
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

SETTINGS = {
    ARROW_ROWS: "131072",
    ARROW_BYTES: str(UNMEASURED),
    PROVIDER: ROCKSDB,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}


def configure(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Give a session the settings with which rows cross to Python quickly and streams keep state.

    Batches of Arrow have 131,072 rows, and Spark does not measure their bytes: by default it does
    so after every row, and crossing takes two to three times as long. State is kept by RocksDB,
    which writes what has changed and not all that it holds.

    Parameters
    ----------
    builder : pyspark.sql.SparkSession.Builder
        E.g. ``SparkSession.builder``. Settings of the same names that it had are replaced.

    Returns
    -------
    pyspark.sql.SparkSession.Builder
        The same one.
    """
    return builder.config(map=dict(SETTINGS))


def crosses_quickly(conf: Callable[[str], str | None]) -> bool:
    """Return whether Spark leaves batches unmeasured; ``conf`` gives the value of a setting."""
    return as_bytes(conf(ARROW_BYTES)) >= UNMEASURED


def as_bytes(value: str | None) -> int:
    """Return a size as Spark shows it, in bytes: ``67108864b``, ``64MB``, ``2147483647``."""
    digits = (value or "").rstrip("bBkKmMgGtTiI")
    unit = (value or "")[len(digits) :].lower()[:1]
    power = {"": 0, "b": 0, "k": 1, "m": 2, "g": 3, "t": 4}[unit]
    return int(digits or 0) << 10 * power
