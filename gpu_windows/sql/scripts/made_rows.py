"""Rows that the connector ``datagen`` makes: the same ones in every attempt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import types
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

from gpu_windows.spark_glue.columns.types import to_spark
from gpu_windows.sql.scripts.definitions import Column
from gpu_windows.vocabulary.options import ticks

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from gpu_windows.sql.scripts.table_options import TableOptions

_RATE, _LENGTH, _MAX = 10_000, 100, (1 << 31) - 1


def make_rows(session: Any, options: TableOptions, *, is_streaming: bool) -> DataFrame:
    """Return rows of a table whose values depend on their numbers alone.

    Raises
    ------
    SqlError
        If an option is not covered, or a bounded table has no number of rows.
    """
    table = options.table
    count = table.options.get("number-of-rows")
    if is_streaming:
        rate = table.options.get("rows-per-second", str(_RATE))
        rows = session.readStream.format("rate").option("rowsPerSecond", rate).load()
        rows = rows.select(F.col("value").alias("__number"), F.col("timestamp").alias("__made"))
        if count is not None:
            rows = rows.where(F.col("__number") < int(count))
    elif count is None:
        raise options.error("a bounded table says 'number-of-rows'", "datagen")
    else:
        rows = session.range(int(count)).withColumnRenamed("id", "__number")
        rows = rows.withColumn("__made", F.current_timestamp())
    columns = [
        _value(options, column, position).alias(column.name)
        for position, column in enumerate(table.columns)
        if column.dtype is not None
    ]
    found: DataFrame = rows.select(*columns)
    return found


def _value(given: TableOptions, column: Column, position: int) -> SparkColumn:
    prefix = f"fields.{column.name}."
    every = given.table.options
    options = {n.removeprefix(prefix): v for n, v in every.items() if n.startswith(prefix)}
    dtype, number = column.dtype, F.col("__number")
    assert dtype is not None, "computed columns are computed of these"
    spark_type = to_spark(dtype)
    if options.get("kind", "random") == "sequence":
        start, end = int(options.get("start", 0)), options.get("end")
        value = number + F.lit(start)
        bounded = value if end is None else F.when(value <= int(end), value)
        return bounded.cast(spark_type)
    random = F.pmod(F.xxhash64(number, F.lit(position)), F.lit(1 << 53))
    if types.is_boolean(dtype):
        return random % 2 == 0
    if types.is_timestamp(dtype):
        past = ticks(options["max-past"]) if "max-past" in options else 0
        micros = F.unix_micros(F.col("__made")) - (random % F.lit(past) if past else F.lit(0))
        return F.timestamp_micros(micros).cast(spark_type)
    if types.is_string(dtype):
        length = int(options.get("length", _LENGTH))
        digits = F.sha2(F.concat_ws("-", number, F.lit(position)).cast("binary"), 512)
        return F.substring(F.repeat(digits, 1 + length // 128), 1, length)
    if not (types.is_integer(dtype) or types.is_floating(dtype) or types.is_decimal(dtype)):
        raise given.error(f"datagen does not make the type of {column.name}", str(dtype))
    return _number(random, dtype, options).cast(spark_type)


def _number(random: SparkColumn, dtype: pa.DataType, options: dict[str, str]) -> SparkColumn:
    """Return random numbers from ``min`` to ``max``."""
    if types.is_integer(dtype):
        min_value, max_value = int(options.get("min", 0)), int(options.get("max", _limit(dtype)))
        return random % F.lit(max_value - min_value + 1) + F.lit(min_value)
    low, high = float(options.get("min", 0)), float(options.get("max", 1))
    share = random / F.lit(float(1 << 53))
    return share * F.lit(high - low) + F.lit(low)


def _limit(dtype: pa.DataType) -> int:
    return int(min((1 << (dtype.bit_width - 1)) - 1, _MAX))
