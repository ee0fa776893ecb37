"""Arrow arrays as those of NumPy: functions over distinct values, nulls, characters by position."""

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


#: The two highest bits of a byte that continues a character.
_CONTINUES, _HIGH_BITS = 0x80, 0xC0


def slice_characters(
    texts: pa.Array, begin: np.ndarray, end: np.ndarray, missing: np.ndarray
) -> pa.Array:
    """Return parts of strings.

    Parameters
    ----------
    texts : pyarrow.Array of string
        A null counts as an empty string.
    begin, end : numpy.ndarray of int64
        Characters of each string, at most its length; a part that ends before it begins is empty.
    missing : numpy.ndarray of bool
        Rows whose result is null.

    Examples
    --------
    >>> texts = pa.array(["naïve", "abc"])
    >>> slice_characters(texts, np.array([2, 0]), np.array([4, 1]), np.array([False, False]))[0]
    <pyarrow.StringScalar: 'ïv'>
    """
    filled = texts.fill_null("")
    offsets = np.frombuffer(filled.buffers()[1], np.int32)[filled.offset :][: len(filled) + 1]
    offsets = offsets.astype(np.int64) if len(offsets) else np.zeros(1, np.int64)
    data = filled.buffers()[2]
    whole = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    used = whole[offsets[0] : offsets[-1]]
    starts = np.flatnonzero((used & _HIGH_BITS) != _CONTINUES)  # bytes at which characters begin
    places = np.append(starts, len(used))
    first = np.searchsorted(starts, offsets[:-1] - offsets[0])
    end = np.maximum(np.where(missing, 0, end), np.where(missing, 0, begin))
    from_byte = places[first + np.where(missing, 0, begin)]
    to_byte = places[first + end]
    lengths = to_byte - from_byte
    bounds = np.concatenate(([0], np.cumsum(lengths)))
    index = np.repeat(from_byte - bounds[:-1], lengths) + np.arange(bounds[-1])
    buffers = [None, pa.py_buffer(bounds.astype(np.int32)), pa.py_buffer(used[index].tobytes())]
    parts = pa.Array.from_buffers(pa.string(), len(texts), buffers)
    return pc.if_else(pa.array(missing), pa.scalar(None, pa.string()), parts)
