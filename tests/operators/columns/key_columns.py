"""Columns of keys, one of every type."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa

COLUMNS = {
    "int64": pa.array([1, None, 2**63 - 1, 1, -(2**63)]),
    "int8": pa.array([1, None, 2, 1, -128], pa.int8()),
    "bool": pa.array([True, None, False, True, True]),
    "string": pa.array(["a", None, "", "a", "\N{SNOWMAN}"]),
    "binary": pa.array([b"a", None, b"", b"a", b"\0"]),
    "double": pa.array([1.5, None, math.inf, 1.5, -2.0]),
    "date": pa.array([date(1960, 1, 1), None, date(2024, 2, 29), date(1960, 1, 1), date.max]),
    "timestamp": pa.array(
        [datetime(1960, 1, 1, tzinfo=UTC), None, None, datetime(1960, 1, 1, tzinfo=UTC), None],
        pa.timestamp("us", "UTC"),
    ),
    "decimal": pa.array([Decimal("1.25"), None, None, Decimal("1.25"), None], pa.decimal128(9, 2)),
    "wide": pa.array([Decimal("1.25"), None, None, Decimal("1.25"), None], pa.decimal128(38, 2)),
    "struct": pa.array(
        [{"a": 1, "b": "x"}, None, {"a": None, "b": None}, {"a": 1, "b": "x"}, None]
    ),
}
