"""Dictionary encoding of keys. Codes are valid within one encoder; state has the values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import types

from gpu_windows.column_types.logical import is_ordered
from gpu_windows.kernels.backend import Backend
from gpu_windows.kernels.contract.arrays import DeviceInts
from gpu_windows.kernels.cpu import grouping
from gpu_windows.kernels.cpu.keys import Encoder, TextEncoder, hash_bytes, mix
from gpu_windows.operators.columns.numeric import (
    ALL,
    canonical_bits,
    from_numeric,
    in_pieces,
    one_chunk,
    to_numeric,
)

Codes = NDArray[np.int64]
Hashes = NDArray[np.int64]


class ColumnEncoder(ABC):
    """Dictionary codes of one column; 0 is null."""

    #: Numbers the values that are not null.
    _encoder: Encoder | TextEncoder | KeyEncoder

    @property
    def count(self) -> int:
        """Number of codes so far, null included."""
        return self._encoder.count + 1

    @abstractmethod
    def encode(self, column: pa.Array | pa.ChunkedArray) -> Codes:
        """Return the code of every row, int64[n]."""

    def encode_on_device(
        self, backend: Backend, column: pa.Array | pa.ChunkedArray
    ) -> DeviceInts | None:
        """Return the same codes, made in the back end's memory; None if it cannot make them.

        Only distinct values are copied to the host, in order of first appearance: so new ones get
        the codes that `encode` gives them, and a call may be repeated.
        """
        del backend, column
        return None

    @abstractmethod
    def decode(self, codes: Codes) -> pa.Array:
        """Return the values of codes."""

    @abstractmethod
    def hashes(self) -> Hashes:
        """Return the hash of every code's value, int64[count]; the same in every process."""


def encoder_for(dtype: pa.DataType) -> ColumnEncoder:
    """Return an encoder for columns of this type."""
    if types.is_struct(dtype):
        return _StructEncoder(dtype)
    if is_ordered(dtype):
        return _NumericEncoder(dtype)
    return _WideEncoder(dtype) if types.is_decimal(dtype) else _TextEncoder(dtype)


class KeyEncoder:
    """Dictionary codes of a key of one or several columns.

    Null is a key of its own, all NaN are one key, and 0.0 is -0.0, as in Spark's ``groupBy``.
    """

    def __init__(self, dtypes: Sequence[pa.DataType]) -> None:
        self._columns = [encoder_for(dtype) for dtype in dtypes]
        self._pairs = [_Pairs() for _ in dtypes[1:]]

    @property
    def count(self) -> int:
        """Number of codes so far."""
        return self._pairs[-1].count if self._pairs else self._columns[0].count

    def encode(
        self, columns: Sequence[pa.Array | pa.ChunkedArray], backend: Backend | None = None
    ) -> Codes:
        """Return the code of every row, int64[n] in [0, count).

        New keys get the next codes in the order in which they first appear.

        Parameters
        ----------
        columns : sequence of pyarrow.Array or pyarrow.ChunkedArray
        backend : Backend, optional
            A device makes the same codes for types that it can compare, and they stay there
            (`Backend.keep`). Default: the CPU.

        Raises
        ------
        DeviceMemoryError
            If a device runs out of memory; the columns may be encoded again, anywhere.
        """
        if backend is not None and backend.name != "cpu" and len(columns[0]):
            made = self._encode_on_device(backend, columns)
            if made is not None:
                return backend.keep(made)
        codes = self._columns[0].encode(columns[0])
        for pairs, encoder, column in zip(self._pairs, self._columns[1:], columns[1:], strict=True):
            codes = pairs.encode_pairs(codes, encoder.encode(column))
        return codes

    def _encode_on_device(
        self, backend: Backend, columns: Sequence[pa.Array | pa.ChunkedArray]
    ) -> DeviceInts | None:
        """Return codes made on the device; None if it supports none of the columns."""
        pairs = [*zip(self._columns, columns, strict=True)]
        found = [encoder.encode_on_device(backend, column) for encoder, column in pairs]
        if all(codes is None for codes in found):
            return None
        for index, (encoder, column) in enumerate(pairs):
            if found[index] is None:
                found[index] = backend.to_device(encoder.encode(column))
        codes = found[0]
        for pairing, encoder, right in zip(self._pairs, self._columns[1:], found[1:], strict=True):
            codes = pairing.encode_on_device(backend, codes, right, encoder.count)
        return codes

    def decode(self, codes: Codes) -> list[pa.Array]:
        """Return the key columns of codes."""
        columns = []
        for pairs, encoder in zip(self._pairs[::-1], self._columns[:0:-1], strict=True):
            codes, last = pairs.decode(codes)
            columns.append(encoder.decode(last))
        columns.append(self._columns[0].decode(codes))
        return columns[::-1]

    def hashes(self) -> Hashes:
        """Return the hash of every code's value, int64[count]; the same in every process."""
        codes = np.arange(self.count)
        hashes = np.zeros(self.count, np.int64)
        for pairs, encoder in zip(self._pairs[::-1], self._columns[:0:-1], strict=True):
            codes, last = pairs.decode(codes)
            mix(encoder.hashes()[last], hashes)
        mix(self._columns[0].hashes()[codes], hashes)
        return hashes


def order_by_code(codes: Codes, count: int) -> Codes:
    """Return the indices that sort codes stably: int64[n].

    A counting sort: ``count`` is the number of codes.
    """
    groups = grouping.group(codes, np.zeros(len(codes), np.int64), max(count, 1), (0, 0))
    return grouping.order_of(groups)


def present(codes: Codes, count: int) -> Codes:
    """Return the distinct codes, ascending; all are below ``count``."""
    return np.flatnonzero(mask_of(codes, count))


def mask_of(codes: Codes, count: int) -> NDArray[np.bool_]:
    """Return which of ``count`` codes are among some: bool[count]."""
    mask = np.zeros(count, np.bool_)
    mask[codes] = True
    return mask


class _Pairs(Encoder):
    """Codes of pairs of codes."""

    def encode_pairs(self, left: Codes, right: Codes) -> Codes:
        return self.encode((left << 32) | right)

    def encode_on_device(
        self, backend: Backend, left: DeviceInts, right: DeviceInts, count: int
    ) -> DeviceInts:
        """Return the codes of pairs on a device; ``count`` is that of the right codes."""
        everyone = backend.to_device(ALL)
        numbers = backend.keys.pairs(left, right, count)

        def encode(pairs: Codes) -> Codes:
            return np.append(self.encode_pairs(*np.divmod(pairs, count)), 0)  # every row has a pair

        return backend.keys.codes(numbers, everyone, encode)

    def decode(self, codes: Codes) -> tuple[Codes, Codes]:
        pairs = self.values[codes]
        return pairs >> 32, pairs & 0xFFFFFFFF


class _NumericEncoder(ColumnEncoder):
    """Numbers, booleans, dates and timestamps, by their 64 bits."""

    def __init__(self, dtype: pa.DataType) -> None:
        self._dtype = dtype
        self._floating = types.is_floating(dtype)
        self._encoder: Encoder = Encoder()

    def encode(self, column: pa.Array | pa.ChunkedArray) -> Codes:
        numeric = to_numeric(column)
        values = np.asarray(numeric.values)  # a device may have it
        values = canonical_bits(values) if self._floating else values
        if len(numeric.valid) == 0:
            codes = self._encoder.encode(values)
            codes += 1
            return codes
        codes = np.zeros(len(values), np.int64)
        codes[numeric.valid] = self._encoder.encode(values[numeric.valid]) + 1
        return codes

    def encode_on_device(
        self, backend: Backend, column: pa.Array | pa.ChunkedArray
    ) -> DeviceInts | None:
        numeric = in_pieces(column)
        values, valid = backend.to_device(numeric.values), backend.to_device(numeric.valid)
        if self._floating:
            values = backend.keys.bits(values)

        def encode(distinct: Codes) -> Codes:
            codes = np.zeros(len(distinct) + 1, np.int64)  # the last one is null
            codes[:-1] = self._encoder.encode(distinct) + 1
            return codes

        return backend.keys.codes(values, valid, encode)

    def decode(self, codes: Codes) -> pa.Array:
        if len(codes) and codes.min() > 0:  # none is null
            return self._make_column(self._encoder.values[codes - 1], ALL)
        valid = codes != 0
        values = np.zeros(len(codes), np.int64)
        values[valid] = self._encoder.values[codes[valid] - 1]
        return self._make_column(values, valid)

    def _make_column(self, bits: Codes, valid: NDArray[np.bool_]) -> pa.Array:
        values: NDArray[Any] = bits.view(np.float64) if self._floating else bits
        return from_numeric(values, valid, self._dtype)

    def hashes(self) -> Hashes:
        hashes = np.zeros(self.count, np.int64)
        mix(np.concatenate([np.zeros(1, np.int64), self._encoder.values]), hashes)
        return hashes


class _BytesEncoder(ColumnEncoder):
    """Other values, by their bytes; Arrow makes them distinct first."""

    def __init__(self, dtype: pa.DataType) -> None:
        self._dtype = dtype
        self._encoder: TextEncoder = TextEncoder()

    def encode(self, column: pa.Array | pa.ChunkedArray) -> Codes:
        whole = one_chunk(column)
        if whole.type != self._dtype:  # Spark may send large strings
            whole = whole.cast(self._dtype)
        local = whole.dictionary_encode()
        positions = self._encoder.encode(*self._bytes(local.dictionary))
        positions = np.concatenate([positions + 1, np.zeros(1, np.int64)])  # the last one is null
        indices = pc.fill_null(local.indices, len(positions) - 1)
        codes: Codes = positions[indices.to_numpy(zero_copy_only=False)]
        return codes

    def decode(self, codes: Codes) -> pa.Array:
        return self._distinct_values().take(pa.array(codes - 1, mask=codes == 0)).cast(self._dtype)

    def hashes(self) -> Hashes:
        return np.concatenate([np.zeros(1, np.int64), self._hashes()])

    @abstractmethod
    def _bytes(self, values: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        """Return where the bytes of each value begin, and the bytes; no value is null."""

    @abstractmethod
    def _distinct_values(self) -> pa.Array:
        """Return the values of all codes but null's, without a copy."""

    @abstractmethod
    def _hashes(self) -> Hashes:
        """Return the hash of each of `_distinct_values`."""


class _TextEncoder(_BytesEncoder):
    """Strings and binary."""

    def __init__(self, dtype: pa.DataType) -> None:
        super().__init__(dtype)
        is_text = types.is_string(dtype) or types.is_large_string(dtype)
        self._large = pa.large_string() if is_text else pa.large_binary()

    def encode_on_device(
        self, backend: Backend, column: pa.Array | pa.ChunkedArray
    ) -> DeviceInts | None:
        return backend.keys.texts(one_chunk(column), self.encode)

    def _bytes(self, values: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        return _texts(values.cast(self._large))

    def _distinct_values(self) -> pa.Array:
        buffers = map(pa.py_buffer, (self._encoder.offsets, self._encoder.data))
        return pa.Array.from_buffers(self._large, self._encoder.count, [None, *buffers])

    def _hashes(self) -> Hashes:
        return self._encoder.hashes


class _WideEncoder(_BytesEncoder):
    """Wide decimals: compared by their bytes, hashed by their decimal digits."""

    def _bytes(self, values: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        width = self._dtype.bit_width // 8
        offsets = (values.offset + np.arange(len(values) + 1)) * width
        return offsets, _memory(values.buffers()[1])

    def _distinct_values(self) -> pa.Array:
        data = pa.py_buffer(self._encoder.data)
        return pa.Array.from_buffers(self._dtype, self._encoder.count, [None, data])

    def _hashes(self) -> Hashes:
        hashes = np.empty(self._encoder.count, np.int64)
        hash_bytes(
            *_texts(self._distinct_values().cast(pa.string()).cast(pa.large_string())), hashes
        )
        return hashes


def _texts(values: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return where each of some large strings or binary begins, and their bytes."""
    _, offsets, data = values.buffers()
    if len(values) == 0:
        return np.zeros(1, np.int64), np.empty(0, np.uint8)
    where = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
    return where, _memory(data)


def _memory(buffer: pa.Buffer | None) -> NDArray[np.uint8]:
    return np.empty(0, np.uint8) if buffer is None else np.frombuffer(buffer, np.uint8)


class _StructEncoder(ColumnEncoder):
    """Structs, by their fields; a null struct is not a struct of nulls."""

    def __init__(self, dtype: pa.StructType) -> None:
        self._dtype = dtype
        self._encoder: KeyEncoder = KeyEncoder([pa.bool_(), *(field.type for field in dtype)])

    def encode(self, column: pa.Array | pa.ChunkedArray) -> Codes:
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        return self._encoder.encode([pc.is_valid(whole), *whole.flatten()]) + 1

    def decode(self, codes: Codes) -> pa.Array:
        present, *children = self._encoder.decode(codes - 1)
        mask = pc.invert(present)
        return pa.StructArray.from_arrays(children, fields=list(self._dtype), mask=mask)

    def hashes(self) -> Hashes:
        return np.concatenate([np.zeros(1, np.int64), self._encoder.hashes()])
