"""Casts batches from Spark to the types of plans, which do not depend on settings of the session.

State outlives a session. But Spark writes the time zone of its session into the Arrow type of every
TIMESTAMP, and with ``useLargeVarTypes`` it sends large strings. Plans have neither: see
`gpu_windows.spark_glue.columns.types`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyarrow import types


def to_planned_types(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches with times in UTC and plain strings; a time zone is changed without a copy."""
    given = planned = None
    for batch in batches:
        if batch.schema is not given and batch.schema != given:
            given = batch.schema
            planned = pa.schema([_planned_field(field) for field in given])
        yield batch if planned == given else batch.cast(planned)


def planned_type(dtype: pa.DataType) -> pa.DataType:
    """Return the Arrow type of a plan for a type that Spark sends, nested types included."""
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
