"""Rows that the connector ``datagen`` makes: the same ones in every attempt."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import types
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

from gpu_windows.spark_glue.columns.types import to_spark
from gpu_windows.sql.scripts.definitions import Column
from gpu_windows.vocabulary.options import ticks

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from gpu_windows.sql.scripts.table_options import SparkOptions, TableOptions

_RATE, _LENGTH, _MAX = 10_000, 100, (1 << 31) - 1


def make_rows(options: SparkOptions) -> DataFrame:
    """Return rows of a table whose values depend on their numbers alone.

    Raises
    ------
    SqlError
        If an option is not covered, or a bounded table has no number of rows.
    """
    session, count = options.session, _count(options)
    if options.is_streaming:
        rate = options.number("rows-per-second", _RATE, int)
        rows = session.readStream.format("rate").option("rowsPerSecond", rate).load()
        rows = rows.select(F.col("value").alias("__number"), F.col("timestamp").alias("__made"))
        if count is not None:
            rows = rows.where(F.col("__number") < count)
    elif count is None:
        raise options.error("a bounded table says 'number-of-rows'", "datagen")
    else:
        rows = session.range(count).withColumnRenamed("id", "__number")
        rows = rows.withColumn("__made", F.current_timestamp())
    columns = [
        _value(options, column, position).alias(column.name)
        for position, column in enumerate(options.table.columns)
        if column.dtype is not None
    ]
    found: DataFrame = rows.select(*columns)
    return found


def _count(options: TableOptions) -> int | None:
    """Return the number of rows: it ends with the first sequence that ends, as in Flink."""
    counts = [options.number("number-of-rows", -1, int)]
    for column in options.table.columns:
        start, end = (f"fields.{column.name}.{each}" for each in ("start", "end"))
        if _is_sequence(options, column) and options.get(end):
            counts.append(options.number(end, 0, int) - options.number(start, 0, int) + 1)
    return min((each for each in counts if each >= 0), default=None)


def _is_sequence(options: TableOptions, column: Column) -> bool:
    return options.get(f"fields.{column.name}.kind", "random") == "sequence"


def _value(given: TableOptions, column: Column, position: int) -> SparkColumn:
    prefix = f"fields.{column.name}."
    dtype, number = column.dtype, F.col("__number")
    assert dtype is not None, "computed columns are computed of these"
    spark_type = to_spark(dtype)
    if _is_sequence(given, column):
        return (number + F.lit(given.number(f"{prefix}start", 0, int))).cast(spark_type)
    random = F.pmod(F.xxhash64(number, F.lit(position)), F.lit(1 << 53))
    if types.is_boolean(dtype):
        return random % 2 == 0
    if types.is_timestamp(dtype):
        text = given.get(f"{prefix}max-past")
        past = ticks(text) if text else 0
        micros = F.unix_micros(F.col("__made")) - (random % F.lit(past) if past else F.lit(0))
        return F.timestamp_micros(micros).cast(spark_type)
    if types.is_string(dtype):
        length = given.number(f"{prefix}length", _LENGTH, int)
        digits = F.sha2(F.concat_ws("-", number, F.lit(position)).cast("binary"), 512)
        return F.substring(F.repeat(digits, 1 + length // 128), 1, length)
    if not (types.is_integer(dtype) or types.is_floating(dtype) or types.is_decimal(dtype)):
        raise given.error(f"datagen does not make the type of {column.name}", str(dtype))
    return _number(random, dtype, given, prefix).cast(spark_type)


def _number(
    random: SparkColumn, dtype: pa.DataType, given: TableOptions, prefix: str
) -> SparkColumn:
    """Return random numbers from ``min`` to ``max``."""
    if types.is_integer(dtype):
        min_value = given.number(f"{prefix}min", 0, int)
        max_value = given.number(f"{prefix}max", _limit(dtype), int)
        return random % F.lit(max_value - min_value + 1) + F.lit(min_value)
    low, high = (given.number(f"{prefix}{n}", d, float) for n, d in (("min", 0.0), ("max", 1.0)))
    share = random / F.lit(float(1 << 53))
    return share * F.lit(high - low) + F.lit(low)


def _limit(dtype: pa.DataType) -> int:
    return int(min((1 << (dtype.bit_width - 1)) - 1, _MAX))
