"""Batches from Spark in types that no setting of the session changes, for state outlives a session.

Spark writes its session's time zone into the Arrow type of every TIMESTAMP, and with
``useLargeVarTypes`` it makes strings large ones. A plan knows neither, see
`gpu_windows.spark_glue.columns.types`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyarrow import types


def as_planned(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches with times in UTC and plain strings; a time zone is changed without a copy."""
    found = wanted = None
    for batch in batches:
        if batch.schema is not found and batch.schema != found:
            found = batch.schema
            wanted = pa.schema([_planned_field(field) for field in found])
        yield batch if wanted == found else batch.cast(wanted)


def planned_type(dtype: pa.DataType) -> pa.DataType:
    """Return the Arrow type that a plan has for what Spark sends as ``dtype``; nested ones too."""
    if types.is_timestamp(dtype) and dtype.tz is not None:
        return pa.timestamp(dtype.unit, "UTC")
    if types.is_large_string(dtype):
        return pa.string()
    if types.is_large_binary(dtype):
        return pa.binary()
    if types.is_list(dtype) or types.is_large_list(dtype):
        return pa.list_(_planned_field(dtype.value_field))
    if types.is_map(dtype):
        return pa.map_(_planned_field(dtype.key_field), _planned_field(dtype.item_field))
    if types.is_struct(dtype):
        return pa.struct([_planned_field(field) for field in dtype])
    return dtype


def _planned_field(field: pa.Field) -> pa.Field:
    return field.with_type(planned_type(field.type))
