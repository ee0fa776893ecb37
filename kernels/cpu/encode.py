"""Encode int64 values to dense codes 0, 1, 2, ... in order of first appearance; hash values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_windows.kernels.compile import kernel
from gpu_windows.kernels.cpu.types import INT, INTS, OUT_INTS, TEXT

_INITIAL_SLOTS = 1 << 12


@kernel((INTS, INT, OUT_INTS, OUT_INTS, INT, OUT_INTS))
def _encode(values: Any, start: Any, slots: Any, known: Any, count: Any, codes: Any) -> Any:
    """Encode ``values[start:]`` until the table is half full.

    Open addressing: ``slots`` holds code + 1, 0 is free; ``known[code]`` is the value.
    Returns (rows encoded, number of codes).
    """
    mask = slots.size - 1
    limit = slots.size // 2
    for i in range(start, values.size):
        value = values[i]
        mixed = np.uint64(value) * np.uint64(0x9E3779B97F4A7C15)
        slot = np.int64(mixed >> np.uint64(32)) & mask
        while slots[slot] != 0 and known[slots[slot] - 1] != value:
            slot = (slot + 1) & mask
        if slots[slot] == 0:
            if count == limit:
                return i, count
            known[count] = value
            count += 1
            slots[slot] = count
        codes[i] = slots[slot] - 1
    return values.size, count


class Encoder:
    """A growing dictionary of int64 values; a code stays valid for the encoder's life."""

    def __init__(self) -> None:
        self._slots = np.zeros(_INITIAL_SLOTS, np.int64)
        self._known = np.empty(_INITIAL_SLOTS // 2, np.int64)
        self.count = 0

    @property
    def values(self) -> NDArray[np.int64]:
        """The value of every code, int64[count]."""
        return self._known[: self.count]

    def encode(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the code of every value, int64[n]; new values get the next codes."""
        codes = np.empty(len(values), np.int64)
        done = 0
        while True:
            done, self.count = _encode(values, done, self._slots, self._known, self.count, codes)
            if done == len(values):
                return codes
            self._grow()

    def _grow(self) -> None:
        known = self.values.copy()
        self._slots = np.zeros(4 * len(self._slots), np.int64)
        self._known = np.empty(len(self._slots) // 2, np.int64)
        self.count = 0
        _, self.count = _encode(
            known, 0, self._slots, self._known, 0, np.empty(len(known), np.int64)
        )


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
