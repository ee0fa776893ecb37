"""The names of types in Flink's SQL, for messages."""

from __future__ import annotations

import pyarrow as pa
from pyarrow import types

_NAMES = {
    pa.string(): "STRING",
    pa.large_string(): "STRING",
    pa.binary(): "BYTES",
    pa.large_binary(): "BYTES",
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.date32(): "DATE",
    pa.null(): "NULL",
}


def flink_name(dtype: pa.DataType) -> str:
    """Return the name that Flink gives a type, or Arrow's if Flink has no such type."""
    if types.is_timestamp(dtype):
        return "TIMESTAMP" if dtype.tz is None else "TIMESTAMP_LTZ"
    if types.is_time(dtype):
        return "TIME"
    if types.is_decimal(dtype):
        return f"DECIMAL({dtype.precision}, {dtype.scale})"
    if types.is_list(dtype) or types.is_large_list(dtype):
        return f"ARRAY<{flink_name(dtype.value_type)}>"
    if types.is_map(dtype):
        return f"MAP<{flink_name(dtype.key_type)}, {flink_name(dtype.item_type)}>"
    if types.is_struct(dtype):
        return f"ROW<{', '.join(f'{each.name} {flink_name(each.type)}' for each in dtype)}>"
    return _NAMES.get(dtype, str(dtype))
