"""The JSON of a Spark schema, for results that Spark has not computed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyarrow import types

from gpu_windows.errors import ColumnTypeError

#: Predicates of Arrow types, and Spark's names of the types that it reads from Parquet.
_SIMPLE: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (types.is_boolean, "boolean"),
    (types.is_int8, "byte"),
    (types.is_int16, "short"),
    (types.is_int32, "integer"),
    (types.is_int64, "long"),
    (types.is_float32, "float"),
    (types.is_float64, "double"),
    (types.is_string, "string"),
    (types.is_binary, "binary"),
    (types.is_date32, "date"),
)


def spark_schema(schema: pa.Schema) -> str:
    """Return the JSON of the schema with which Spark reads a Parquet file of an Arrow table.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of logical types.

    Raises
    ------
    ColumnTypeError
        If Spark has no type for a column, or would read it as another one.
    """
    return json.dumps(_struct(schema, None))


def _struct(fields: Any, column: str | None) -> dict[str, Any]:
    described = [
        {"name": f.name, "type": _type(f.type, column or f.name), "nullable": True, "metadata": {}}
        for f in fields
    ]
    return {"type": "struct", "fields": described}


def _type(dtype: pa.DataType, column: str) -> Any:
    for matches, name in _SIMPLE:
        if matches(dtype):
            return name
    if types.is_decimal128(dtype):
        return f"decimal({dtype.precision},{dtype.scale})"
    if types.is_timestamp(dtype) and dtype.unit == "us":
        return "timestamp_ntz" if dtype.tz is None else "timestamp"
    if types.is_list(dtype):
        element = _type(dtype.value_type, column)
        return {"type": "array", "elementType": element, "containsNull": True}
    if types.is_struct(dtype):
        return _struct(dtype, column)
    if types.is_map(dtype):
        key, value = (_type(each, column) for each in (dtype.key_type, dtype.item_type))
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
    rule = "Spark reads a column of this type from Parquet as another type: cast it"
    raise ColumnTypeError(rule, value=dtype, column=column)
