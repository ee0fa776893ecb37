"""Types by Spark's names, as Arrow's."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from gpu_windows.expressions.places import refused

_TYPES = {
    exp.DType.BOOLEAN: pa.bool_(),
    exp.DType.TINYINT: pa.int8(),
    exp.DType.SMALLINT: pa.int16(),
    exp.DType.INT: pa.int32(),
    exp.DType.BIGINT: pa.int64(),
    exp.DType.FLOAT: pa.float32(),
    exp.DType.DOUBLE: pa.float64(),
    exp.DType.TEXT: pa.string(),
    exp.DType.VARCHAR: pa.string(),
    exp.DType.DATE: pa.date32(),
    exp.DType.TIMESTAMP: pa.timestamp("us", "UTC"),
    exp.DType.TIMESTAMPTZ: pa.timestamp("us", "UTC"),
    exp.DType.TIMESTAMPLTZ: pa.timestamp("us", "UTC"),
}


def arrow_type(cast: exp.Cast) -> pa.DataType:
    """Return the type that a cast names.

    Raises
    ------
    SqlError
        If Arrow has none that is the same.
    """
    to = cast.args["to"]
    if to.this == exp.DType.DECIMAL:
        precision, scale = ([*(int(p.name) for p in to.expressions), 10, 0])[:2]
        if len(to.expressions) == 1:
            scale = 0
        if not 0 < precision <= 38 or not 0 <= scale <= precision:
            raise refused(cast, "a DECIMAL has up to 38 digits")
        return pa.decimal128(precision, scale)
    if to.this not in _TYPES or to.expressions:
        raise refused(cast, "over Arrow tables there is no such type")
    return _TYPES[to.this]
