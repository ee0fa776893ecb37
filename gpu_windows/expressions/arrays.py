"""Arrow arrays as those of NumPy, and functions over rows of any form and over distinct values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpu_windows.expressions.values import Rows


def map_arrays(function: Callable[[pa.Array], pa.Array], rows: Rows) -> Rows:
    """Return a function of arrays applied to rows of any form."""
    if isinstance(rows, pa.Scalar):
        return function(pa.array([rows.as_py()], rows.type))[0]
    if isinstance(rows, pa.ChunkedArray):
        chunks = [function(each) for each in rows.chunks]
        return pa.chunked_array(chunks, None if chunks else function(pa.array([], rows.type)).type)
    return function(rows)


def map_distinct(array: pa.Array, function: Callable[[Any], Any], dtype: pa.DataType) -> pa.Array:
    """Return a function of Python applied to the distinct values; null stays null."""
    coded = pc.dictionary_encode(array)
    values = pa.array([function(each) for each in coded.dictionary.to_pylist()], dtype)
    return values.take(coded.indices)


def map_distinct_rows(
    arrays: Sequence[pa.Array], function: Callable[..., Any], dtype: pa.DataType
) -> pa.Array:
    """Return a function of Python applied to the distinct rows of arrays; null if one is null."""
    codes, missing = np.zeros(len(arrays[0]), np.int64), find_missing(*arrays)
    for array in arrays:
        coded = pc.dictionary_encode(array)
        indices = whole_numbers(coded.indices)
        _, codes = np.unique(codes * max(len(coded.dictionary), 1) + indices, return_inverse=True)
    _, first, places = np.unique(np.where(missing, -1, codes), return_index=True,
                                 return_inverse=True)  # fmt: skip
    rows = zip(*(each.take(pa.array(first)).to_pylist() for each in arrays), strict=True)
    values = [None if None in row else function(*row) for row in rows]
    return pa.array(values, dtype).take(pa.array(places))


def whole_numbers(array: pa.Array) -> np.ndarray:
    """Return integers, or times in their unit; 0 for null."""
    found: np.ndarray = pc.fill_null(array.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    return found


def find_missing(*arrays: pa.Array) -> np.ndarray:
    """Return where one of several arrays is null."""
    nulls = np.stack([each.is_null().to_numpy(False) for each in arrays])
    return np.asarray(nulls.any(axis=0), np.bool_)
