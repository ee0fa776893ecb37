"""Keys of any type: codes are dense, decoding gives the values back."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gpu_windows.kernels.cpu import keys as cpu_keys
from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.columns.numeric import sortable
from tests.cost import cpu_seconds
from tests.operators.columns.key_columns import COLUMNS


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


def test_keys_of_one_hash_are_different_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_hash(_: Any, __: Any, hashes: Any) -> None:
        hashes[:] = 7

    monkeypatch.setattr(cpu_keys, "hash_bytes", no_hash)
    texts = pa.array(["ab", "a", "", "b", "ab", None, "ba", "a\0", "a"])
    encoder = KeyEncoder([texts.type])
    codes = encoder.encode([texts])
    assert codes.tolist() == [1, 2, 3, 4, 1, 0, 5, 6, 2]
    assert encoder.encode([texts]).tolist() == codes.tolist()
    assert encoder.decode(codes)[0].to_pylist() == texts.to_pylist()


@pytest.mark.parametrize("kind", [pa.large_string(), pa.binary(), pa.decimal256(50)])
def test_no_batch_and_batches_without_a_key(kind: pa.DataType) -> None:
    encoder = KeyEncoder([kind])
    assert encoder.encode([pa.array([], kind)]).tolist() == []
    assert encoder.decode(np.empty(0, np.int64))[0].type == kind
    assert encoder.encode([pa.nulls(2, kind)]).tolist() == [0, 0]
    assert encoder.encode([pa.chunked_array([], kind)]).tolist() == []
    assert encoder.decode(np.zeros(2, np.int64))[0].to_pylist() == [None, None]
    assert encoder.hashes().tolist() == [0]


def texts_of(count: int) -> pa.Array:
    return pa.array(np.arange(count)).cast(pa.string())


def structs_of(count: int) -> pa.Array:
    return pa.StructArray.from_arrays([texts_of(count)], ["text"])


@pytest.mark.parametrize(
    "columns",
    [
        lambda n: [pa.array(np.arange(n))],
        lambda n: [texts_of(n)],
        lambda n: [texts_of(n).cast(pa.binary())],
        lambda n: [pa.array(np.arange(n)).cast(pa.decimal128(38))],
        lambda n: [texts_of(n), pa.array(np.arange(n))],
        lambda n: [structs_of(n)],
    ],
    ids=["int64", "string", "binary", "wide", "two", "struct"],
)
def test_a_batch_costs_what_it_has_however_many_keys_there_are(columns: Any) -> None:
    few, many = columns(100), columns(200_000)

    def cost(known: list[pa.Array]) -> float:
        encoder = KeyEncoder([column.type for column in known])
        encoder.encode(known)
        return cpu_seconds(lambda: encoder.decode(encoder.encode(few)), 30)

    assert cost(many) < 8 * cost(few)


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
