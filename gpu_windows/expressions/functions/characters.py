"""Characters of strings by position, computed on their UTF-8 bytes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

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
    return pa.compute.if_else(pa.array(missing), pa.scalar(None, pa.string()), parts)
