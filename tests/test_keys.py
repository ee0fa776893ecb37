"""Keys of any type: codes are dense, decoding gives the values back."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.columns.lanes import sortable

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


@pytest.mark.parametrize("name", COLUMNS)
def test_one_column(name: str) -> None:
    column = COLUMNS[name]
    encoder = KeyEncoder([column.type])
    codes = encoder.encode([column])
    assert codes.max() < encoder.count
    assert codes[0] == codes[3] != codes[1]
    assert encoder.decode(codes)[0].to_pylist() == column.to_pylist()
    again = encoder.encode([pa.concat_arrays([column.slice(2), column.slice(0, 2)])])
    assert again.tolist() == [*codes[2:], *codes[:2]]


def test_several_columns() -> None:
    columns = list(COLUMNS.values())
    encoder = KeyEncoder([column.type for column in columns])
    codes = encoder.encode(columns)
    assert codes.tolist() == [0, 1, 2, 0, 3]
    assert [c.to_pylist() for c in encoder.decode(codes)] == [c.to_pylist() for c in columns]


def test_nan_is_one_key_and_zero_has_no_sign() -> None:
    encoder = KeyEncoder([pa.float64()])
    codes = encoder.encode([pa.array([math.nan, -0.0, 0.0, -math.nan])])
    assert codes.tolist() == [1, 2, 2, 1]


def test_many_keys_grow_the_table() -> None:
    encoder = KeyEncoder([pa.int64(), pa.string()])
    numbers = pa.array(range(50_000))
    codes = encoder.encode([numbers, numbers.cast(pa.string())])
    assert sorted(codes.tolist()) == list(range(50_000))
    assert encoder.decode(codes[:3])[1].to_pylist() == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("values", "order"),
    [
        ([1.0, math.nan, None, -1.0, -0.0, 0.0, math.inf, -math.inf], [2, 7, 3, 4, 5, 0, 6, 1]),
        (["b", None, "a", "b"], [1, 2, 0, 3]),
        ([3, None, -(2**63), 2**63 - 1], [1, 2, 0, 3]),
        ([True, False, None], [2, 1, 0]),
    ],
)
def test_sortable_is_the_order_of_spark(values: list[Any], order: list[int]) -> None:
    keys = sortable(pa.array(values)).tolist()
    assert sorted(range(len(values)), key=lambda i: (keys[i], i)) == order
