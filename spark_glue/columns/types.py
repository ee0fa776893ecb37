"""Spark's types to Arrow's and back.

Written out because PySpark's own functions change their signature between versions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import types as arrow
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it
from pyspark.sql import types as spark

from gpu_windows.column_types.logical import collation_of, with_collation
from gpu_windows.errors import ColumnNameError
from gpu_windows.spark_glue.columns.names import quote_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_SIMPLE: dict[type[spark.DataType], pa.DataType] = {
    spark.BooleanType: pa.bool_(),
    spark.ByteType: pa.int8(),
    spark.ShortType: pa.int16(),
    spark.IntegerType: pa.int32(),
    spark.LongType: pa.int64(),
    spark.FloatType: pa.float32(),
    spark.DoubleType: pa.float64(),
    spark.StringType: pa.string(),
    spark.CharType: pa.string(),
    spark.VarcharType: pa.string(),
    spark.BinaryType: pa.binary(),
    spark.DateType: pa.date32(),
    spark.TimestampType: pa.timestamp("us", "UTC"),
    spark.TimestampNTZType: pa.timestamp("us"),
    spark.DayTimeIntervalType: pa.duration("us"),
}


#: The collation of text that is compared by its bytes.
_BY_BYTES = "UTF8_BINARY"


def to_arrow(dtype: spark.DataType) -> pa.DataType:
    """Return the Arrow type in which Spark sends a column to Python; ``null`` if it cannot."""
    if isinstance(dtype, spark.DecimalType):
        return pa.decimal128(dtype.precision, dtype.scale)
    if isinstance(dtype, spark.ArrayType):
        return pa.list_(_field("item", dtype.elementType))
    if isinstance(dtype, spark.StructType):
        return pa.struct([_field(f.name, f.dataType) for f in dtype.fields])
    if isinstance(dtype, spark.MapType):
        key = _field("key", dtype.keyType).with_nullable(False)
        return pa.map_(key, _field("value", dtype.valueType))
    return _SIMPLE.get(type(dtype), pa.null())


def to_arrow_schema(schema: spark.StructType) -> pa.Schema:
    """Return the Arrow schema of a DataFrame."""
    return pa.schema([_field(f.name, f.dataType) for f in schema.fields])


def _field(name: str, dtype: spark.DataType) -> pa.Field:
    """Return the Arrow field of a column, with the collation of strings in its metadata."""
    field = pa.field(name, to_arrow(dtype))
    collation = getattr(dtype, "collation", _BY_BYTES)
    is_collated = isinstance(dtype, spark.StringType) and collation != _BY_BYTES
    return with_collation(field, collation) if is_collated else field


def to_spark(dtype: pa.DataType) -> spark.DataType:
    """Return the Spark type of an Arrow type."""
    if arrow.is_decimal(dtype):
        return spark.DecimalType(dtype.precision, dtype.scale)
    if arrow.is_list(dtype):
        return spark.ArrayType(_spark_type(dtype.value_field))
    if arrow.is_struct(dtype):
        return spark.StructType([spark.StructField(f.name, _spark_type(f)) for f in dtype])
    if arrow.is_map(dtype):
        return spark.MapType(_spark_type(dtype.key_field), _spark_type(dtype.item_field))
    for spark_type, arrow_type in _SIMPLE.items():
        if arrow_type == dtype:
            return spark_type()
    raise TypeError(f"no Spark type for {dtype}")


def _spark_type(field: pa.Field) -> spark.DataType:
    collation = collation_of(field)
    return to_spark(field.type) if collation is None else spark.StringType(collation)


def in_type(frame: DataFrame, field: pa.Field) -> Column:
    """Return a column of a DataFrame, cast to the type of a field of its name."""
    column = F.col(quote_name(field.name))
    if to_arrow(frame.schema[field.name].dataType) == field.type:
        return column
    return column.cast(to_spark(field.type)).alias(field.name)


def to_spark_schema(schema: pa.Schema, like: Iterable[spark.StructField] = ()) -> spark.StructType:
    """Return the Spark schema of a table; columns of the same name keep the type in ``like``."""
    given = {field.name: field.dataType for field in like}
    return spark.StructType(
        [spark.StructField(f.name, given.get(f.name) or _spark_type(f), f.nullable) for f in schema]
    )


def check_name(name: str) -> None:
    """Raise `ColumnNameError` for a name that ``mapInArrow`` cannot look up: it does not quote."""
    if "." in name or "`" in name:
        rule = (
            "columns with dots or backticks in their names cannot be sent to Python: rename "
            "them with alias()"
        )
        raise ColumnNameError(rule, value=repr(name), column=name)
