"""Codes of keys: dictionaries that give 0, 1, 2, ... in order of first appearance; hashes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_windows.kernels.argument_types import INT, INTS, OUT_INTS, OUT_TEXT, TEXT
from gpu_windows.kernels.compile import inner, kernel

Ints = NDArray[np.int64]

_INITIAL_SLOTS = 1 << 12


@inner(inline="always")
def _first_slot(value: Any, mask: Any) -> Any:
    """Return where a value, or the hash of a text, is looked for first in a table."""
    mixed = np.uint64(value) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64(mixed >> np.uint64(32)) & mask


@kernel((INTS, INT, OUT_INTS, OUT_INTS, INT, OUT_INTS))
def _encode(values: Any, start: Any, slots: Any, distinct: Any, count: Any, codes: Any) -> Any:
    """Encode ``values[start:]`` until the table is half full.

    Open addressing: ``slots`` holds code + 1, 0 is free; ``distinct[code]`` is the value.
    Returns (rows encoded, number of codes).
    """
    mask = slots.size - 1
    limit = slots.size // 2
    for i in range(start, values.size):
        value = values[i]
        slot = _first_slot(value, mask)
        while slots[slot] != 0 and distinct[slots[slot] - 1] != value:
            slot = (slot + 1) & mask
        if slots[slot] == 0:
            if count == limit:
                return i, count
            distinct[count] = value
            count += 1
            slots[slot] = count
        codes[i] = slots[slot] - 1
    return values.size, count


@kernel((INTS, OUT_INTS))
def _place(values: Any, slots: Any) -> None:
    """Put codes, whose values (or texts) are all different, into a free table."""
    mask = slots.size - 1
    for code in range(values.size):
        slot = _first_slot(values[code], mask)
        while slots[slot] != 0:
            slot = (slot + 1) & mask
        slots[slot] = code + 1


class Encoder:
    """A growing dictionary of int64 values; a code stays valid for the encoder's life."""

    def __init__(self) -> None:
        self._slots = np.zeros(_INITIAL_SLOTS, np.int64)
        self._values = np.empty(_INITIAL_SLOTS // 2, np.int64)
        self.count = 0

    @property
    def values(self) -> NDArray[np.int64]:
        """The value of every code, int64[count]."""
        return self._values[: self.count]

    def encode(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the code of every value, int64[n]; new values get the next codes."""
        codes = np.empty(len(values), np.int64)
        done = 0
        while True:
            done, self.count = _encode(values, done, self._slots, self._values, self.count, codes)
            if done == len(values):
                return codes
            self._grow()

    def _grow(self) -> None:
        self._slots = np.zeros(4 * len(self._slots), np.int64)
        self._values = _resize(self._values, self.count, len(self._slots) // 2)
        _place(self.values, self._slots)


@kernel((INTS, TEXT, INTS, INT, OUT_INTS, OUT_INTS, OUT_INTS, OUT_TEXT, INT, OUT_INTS))
def _encode_texts(
    offsets: Any, data: Any, hashes: Any, start: Any,
    slots: Any, all_hashes: Any, all_offsets: Any, all_data: Any, count: Any, codes: Any,
) -> Any:  # fmt: skip
    """Encode the texts from ``start`` on until the table is half full, as `_encode` does.

    ``all_data[all_offsets[code]:all_offsets[code + 1]]`` is the text of a code.
    """
    mask = slots.size - 1
    limit = slots.size // 2
    for i in range(start, hashes.size):
        begin, length = offsets[i], offsets[i + 1] - offsets[i]
        slot = _first_slot(hashes[i], mask)
        while slots[slot] != 0:
            code = slots[slot] - 1
            place = all_offsets[code]
            same = 0
            if all_hashes[code] == hashes[i] and all_offsets[code + 1] - place == length:
                while same < length and all_data[place + same] == data[begin + same]:
                    same += 1
                if same == length:
                    break
            slot = (slot + 1) & mask
        if slots[slot] == 0:
            if count == limit:
                return i, count
            place = all_offsets[count]
            for j in range(length):
                all_data[place + j] = data[begin + j]
            all_hashes[count] = hashes[i]
            count += 1
            all_offsets[count] = place + length
            slots[slot] = count
        codes[i] = slots[slot] - 1
    return hashes.size, count


class TextEncoder:
    """A growing dictionary of strings of bytes; a code stays valid for the encoder's life."""

    def __init__(self) -> None:
        self._slots = np.zeros(_INITIAL_SLOTS, np.int64)
        self._hashes = np.empty(_INITIAL_SLOTS // 2, np.int64)
        self._offsets = np.zeros(_INITIAL_SLOTS // 2 + 1, np.int64)
        self._data = np.empty(0, np.uint8)
        self.count = 0

    @property
    def hashes(self) -> NDArray[np.int64]:
        """The hash of every code's text, as `hash_bytes` makes it: int64[count]."""
        return self._hashes[: self.count]

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Where in `data` the text of every code begins, and where the last one ends."""
        return self._offsets[: self.count + 1]

    @property
    def data(self) -> NDArray[np.uint8]:
        """The texts of all codes, one after the other."""
        return self._data[: self._offsets[self.count]]

    def encode(self, offsets: NDArray[np.int64], data: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Return the code of every text, int64[n]; new texts get the next codes.

        Parameters
        ----------
        offsets : int64[n + 1]
            Where in ``data`` each text begins, and where the last one ends.
        data : uint8[m]
            ``data[offsets[i]:offsets[i + 1]]`` is a text.
        """
        hashes, codes = np.empty((2, len(offsets) - 1), np.int64)
        hash_bytes(offsets, data, hashes)
        self._reserve(int(offsets[-1] - offsets[0]))
        texts, done = (offsets, data, hashes), 0
        while True:
            distinct = self._slots, self._hashes, self._offsets, self._data
            done, self.count = _encode_texts(*texts, done, *distinct, self.count, codes)
            if done == len(codes):
                return codes
            self._grow()

    def _reserve(self, more: int) -> None:
        """Grow the bytes of distinct texts, in case all of a call are new."""
        used = len(self.data)
        if used + more > len(self._data):
            self._data = _resize(self._data, used, max(used + more, 2 * used))

    def _grow(self) -> None:
        self._slots = np.zeros(4 * len(self._slots), np.int64)
        self._hashes = _resize(self._hashes, self.count, len(self._slots) // 2)
        self._offsets = _resize(self._offsets, self.count + 1, len(self._slots) // 2 + 1)
        _place(self.hashes, self._slots)


def _resize(values: NDArray[Any], used: int, size: int) -> NDArray[Any]:
    """Return a longer array that begins with the ``used`` first values."""
    longer = np.empty(size, values.dtype)
    longer[:used] = values[:used]
    return longer


@kernel((INTS, OUT_INTS))
def mix(values: Any, hashes: Any) -> None:
    """Mix int64 values into the hashes of rows, both int64[n] (splitmix64's finaliser)."""
    for i in range(values.size):
        h = (np.uint64(hashes[i]) * np.uint64(31)) ^ np.uint64(values[i])
        h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        hashes[i] = np.int64(h ^ (h >> np.uint64(31)))


@kernel((INTS, TEXT, OUT_INTS))
def hash_bytes(offsets: Any, data: Any, hashes: Any) -> None:
    """Hash strings: ``data[offsets[i]:offsets[i + 1]]`` to ``hashes[i]`` (FNV-1a, 64 bits)."""
    for i in range(hashes.size):
        h = np.uint64(0xCBF29CE484222325)
        for j in range(offsets[i], offsets[i + 1]):
            h = (h ^ np.uint64(data[j])) * np.uint64(0x100000001B3)
        hashes[i] = np.int64(h)


# ---- of a batch


def codes(values: Ints, valid: NDArray[np.bool_], encode: Callable[[Ints], Ints]) -> Ints:
    """See `contract.keys.Keys.codes`."""
    encoder = Encoder()
    if len(valid) == 0:
        places = encoder.encode(values)
        return encode(encoder.values)[places]
    found = encoder.encode(values[valid])
    places = np.full(len(values), encoder.count)
    places[valid] = found
    return encode(encoder.values)[places]


def bits(values: NDArray[np.float64]) -> Ints:
    """See `contract.keys.Keys.bits`."""
    return np.where(np.isnan(values), np.nan, values + 0.0).view(np.int64)


def pairs(left: Ints, right: Ints, count: int) -> Ints:
    """See `contract.keys.Keys.pairs`."""
    return left * count + right


def texts(column: Any, encode: Callable[[Any], Ints]) -> Ints | None:
    """See `contract.keys.Keys.texts`."""
    del column, encode
    return None


def number(codes: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """See `contract.keys.Keys.number`."""
    numbers, counts = np.empty(len(codes), np.int64), counts.copy()
    _number(codes, counts, numbers)
    return numbers, counts


@kernel((INTS, OUT_INTS, OUT_INTS))
def _number(codes: Any, counts: Any, numbers: Any) -> None:
    for i in range(codes.size):
        numbers[i] = counts[codes[i]]
        counts[codes[i]] += 1
