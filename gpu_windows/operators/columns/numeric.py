"""Arrow columns to and from the two types of kernels: int64 and float64."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import types

from gpu_windows.column_types.logical import is_ordered
from gpu_windows.kernels.cpu import keys as cpu_keys
from gpu_windows.kernels.lazy_array import Pieces

#: The mask that means "no nulls".
ALL: NDArray[np.bool_] = np.empty(0, np.bool_)


@dataclass(frozen=True)
class NumericColumn:
    """A column as kernels read it.

    Parameters
    ----------
    values : int64[n] or float64[n]
        Undefined where not valid.
    valid : bool[n], or empty for all
        Which values are not null.
    """

    values: NDArray[Any]
    valid: NDArray[np.bool_]

    def fill_nulls(self, value: Any) -> NDArray[Any]:
        """Return the values, with another one in the place of nulls."""
        return self.values if len(self.valid) == 0 else np.where(self.valid, self.values, value)


@dataclass(frozen=True)
class TypedNumericColumn(NumericColumn):
    """A column that was converted before, maybe in device memory.

    Parameters
    ----------
    type : pyarrow.DataType
        Of the column.
    """

    type: pa.DataType

    def __len__(self) -> int:
        return len(self.values)

    def slice(self, begin: int, length: int | None = None) -> Self:
        """Return some values; those of a device are copied to the host."""
        part = slice(begin, None if length is None else begin + length)
        return replace(self, values=self.values[part], valid=self.valid[part])


def to_numeric(column: pa.Array | pa.ChunkedArray | TypedNumericColumn) -> NumericColumn:
    """View or convert a column of numbers, booleans, dates or timestamps.

    Decimals of up to 18 digits become their unscaled int64, wider ones the lower word of it.
    """
    if isinstance(column, TypedNumericColumn):
        return column
    array = one_chunk(column)
    valid = ALL
    if array.null_count:
        valid = pc.is_valid(array).to_numpy(zero_copy_only=False)
    return NumericColumn(values_of(array), valid)


def in_pieces(column: pa.Array | pa.ChunkedArray | TypedNumericColumn) -> NumericColumn:
    """Return a column as `to_numeric` does, but leave chunks apart for their way to a device.

    Arrays are `Pieces`, which no kernel of the CPU takes.
    """
    if not isinstance(column, pa.ChunkedArray) or column.num_chunks == 1:
        return to_numeric(column)
    chunks = [chunk for chunk in column.chunks if len(chunk)]
    values: Any = Pieces([_view_values(chunk) for chunk in chunks], _dtype_of(column.type))
    valid: Any = ALL
    if column.null_count:
        masks = [pc.is_valid(chunk).to_numpy(zero_copy_only=False) for chunk in chunks]
        valid = Pieces(masks, np.bool_)
    return NumericColumn(values, valid)


def one_chunk(column: pa.Array | pa.ChunkedArray | TypedNumericColumn) -> Any:
    """Return a column as one array, without a copy if it has one chunk."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def values_of(array: pa.Array | TypedNumericColumn) -> NDArray[Any]:
    """View or convert an array as int64 or float64; undefined where null."""
    if isinstance(array, TypedNumericColumn):
        return array.values
    if len(array) == 0:
        return np.empty(0, _dtype_of(array.type))
    return np.ascontiguousarray(_view_values(array)).astype(_dtype_of(array.type), copy=False)


def _dtype_of(dtype: pa.DataType) -> np.dtype[Any]:
    return np.dtype(np.float64 if types.is_floating(dtype) else np.int64)


def _view_values(array: pa.Array) -> NDArray[Any]:
    """View the values of an array, of at least one, as they are stored; undefined where null."""
    dtype = array.type
    if types.is_boolean(dtype):
        flags: NDArray[Any] = pc.fill_null(array, False).to_numpy(zero_copy_only=False)
        return flags
    if types.is_decimal128(dtype):
        return _buffer(array, np.dtype("2i8"))[:, 0]
    if types.is_floating(dtype):
        return _buffer(array, np.dtype(f"f{dtype.bit_width // 8}"))
    signed = "u" if types.is_unsigned_integer(dtype) else "i"
    return _buffer(array, np.dtype(f"{signed}{dtype.bit_width // 8}"))


def upper_words(array: pa.Array) -> NDArray[np.int64]:
    """Return the upper words of wide decimals; `values_of` returns the lower ones.

    Both are signed: a value is ``upper * 2**64 + lower``.
    """
    if len(array) == 0:
        return np.empty(0, np.int64)
    words = _buffer(array, np.dtype("2i8"))
    upper: NDArray[np.int64] = words[:, 1] + (words[:, 0] < 0)
    return upper


def _buffer(array: pa.Array, dtype: np.dtype[Any]) -> NDArray[Any]:
    base, shape = dtype.subdtype or (dtype, ())
    width = int(np.prod(shape)) if shape else 1
    flat = np.frombuffer(array.buffers()[1], base)
    part: NDArray[Any] = flat[array.offset * width : (array.offset + len(array)) * width]
    return part.reshape(-1, *shape) if shape else part


def from_numeric(values: NDArray[Any], valid: NDArray[np.bool_], dtype: pa.DataType) -> pa.Array:
    """Build a column of ``dtype`` from kernel values; null where not valid."""
    mask = None if len(valid) == 0 or valid.all() else pa.array(valid)
    if types.is_decimal128(dtype):
        return decimal_array(values >> 63, values, mask, dtype)
    if types.is_boolean(dtype):
        array = pa.array(values != 0)
    elif types.is_floating(dtype) or types.is_integer(dtype):
        array = pa.array(values).cast(dtype, safe=False)
    else:  # dates and timestamps
        integers = pa.int32() if dtype.bit_width == 32 else pa.int64()
        array = pa.array(values).cast(integers, safe=False).view(dtype)
    return array if mask is None else pc.if_else(mask, array, pa.scalar(None, dtype))


def decimal_array(
    high: NDArray[np.int64], low: NDArray[np.int64], mask: pa.Array | None, dtype: pa.DataType
) -> pa.Array:
    """Build decimals from the two 64-bit halves of their unscaled values."""
    halves = np.empty((len(low), 2), np.int64)
    halves[:, 0], halves[:, 1] = low, high
    array = pa.Array.from_buffers(dtype, len(low), [None, pa.py_buffer(halves)])
    return array if mask is None else pc.if_else(mask, array, pa.scalar(None, dtype))


def sortable(column: pa.Array | pa.ChunkedArray) -> NDArray[np.int64]:
    """Return int64[n] in the order of the column's values, nulls first, NaN last.

    Equal values get equal numbers. Strings and binary are ranked within this column only.
    """
    array = one_chunk(column)
    if types.is_floating(array.type):
        return _null_first(_float_order(values_of(array)), array)
    if is_ordered(array.type):
        return _null_first(values_of(array), array)
    ranks = pc.rank(array, sort_keys="ascending", tiebreaker="dense")
    return _null_first(ranks.to_numpy(zero_copy_only=False).astype(np.int64), array)


def _float_order(values: NDArray[np.float64]) -> NDArray[np.int64]:
    bits = canonical_bits(values)
    return np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)


def canonical_bits(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the bits of floats, with one NaN and one zero."""
    return cpu_keys.bits(values)


def _null_first(order: NDArray[np.int64], array: pa.Array) -> NDArray[np.int64]:
    if not array.null_count:
        return order
    valid = pc.is_valid(array).to_numpy(zero_copy_only=False)
    _, dense = np.unique(np.where(valid, order, 0), return_inverse=True)
    return np.where(valid, dense + 1, 0).astype(np.int64)
