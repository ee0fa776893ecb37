"""Hashes of keys: sets of them, as sorted arrays without duplicates, int64[n]; and filters.

NumPy's own functions of sets take several times as long: they sort again what is sorted. Bloom
filters tell which keys a run certainly does not contain.

Source: B. H. Bloom, Space/time trade-offs in hash coding with allowable errors, 1970.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gpu_windows.operators.state.frames import pack_frame, unpack_frame

Ints = NDArray[np.int64]

#: Keys of a part of a filter, about; bits per key, and how many are set: 5 % false positives.
_KEYS, _BITS, _SET = 16_384, 6, 4
#: Reading a part of a filter takes about as long as reading this many blocks.
_BLOCKS = 4
#: Keys per block up to which it is likely that none of them is a false positive.
_FEW = 8
#: Odd, carries the lower bits of a hash into the upper ones: 2**64 divided by the golden ratio.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)

#: Returns a part of a filter by its number.
ReadPart = Callable[[int], bytes]


def distinct(values: Ints) -> Ints:
    """Return values as a set: sorted, each once."""
    values = np.sort(values, kind="stable")
    return values[np.flatnonzero(np.diff(values, prepend=~values[:1]))]


def union(one: Ints, other: Ints) -> Ints:
    """Return the union of two sets, which may have duplicates."""
    return distinct(np.concatenate([one, other]))


def among(values: Ints, keys: Ints) -> NDArray[np.bool_]:
    """Return whether each value, in any order, is in a set: bool[n]."""
    if len(keys) == 0:
        return np.zeros(len(values), np.bool_)
    found: NDArray[np.bool_] = keys[np.searchsorted(keys[:-1], values)] == values
    return found


def without(keys: Ints, others: Ints) -> Ints:
    """Return the difference of two sets."""
    return keys[~among(keys, others)]


def part_of(hashes: Ints, count: int) -> Ints:
    """Return the part of each hash, below ``count``, by its upper bits.

    The lower bits select the shard.
    """
    upper = as_unsigned(hashes) >> np.uint64(32)
    return ((upper * np.uint64(count)) >> np.uint64(32)).astype(np.int64)


def as_unsigned(hashes: Ints) -> NDArray[np.uint64]:
    """Return hashes as unsigned numbers, whose order is that of parts."""
    return np.ascontiguousarray(hashes).view(np.uint64)


def build_filter(keys: Ints) -> list[bytes]:
    """Return the parts of a filter of some keys, given by their hashes."""
    count = -(-len(keys) // _KEYS)
    parts = part_of(keys, count)
    order = np.argsort(parts, kind="stable")
    edges = np.searchsorted(parts[order], np.arange(count + 1))
    frames = []
    for number in range(count):
        part_keys = keys[order[edges[number] : edges[number + 1]]]
        bits = np.zeros(max(1, len(part_keys) * _BITS // 8) * 8, np.bool_)
        bits[_bits_of(part_keys, len(bits))] = True
        frames.append(pack_frame(np.packbits(bits).tobytes()))
    return frames


def is_worth_reading(keys: Ints, parts: int, blocks: int) -> bool:
    """Whether reading a filter of ``parts`` parts for keys is cheaper than reading the blocks."""
    if not parts or len(keys) > _FEW * blocks:
        return False
    return len(distinct(part_of(keys, parts))) * _BLOCKS <= blocks


def select_possible(keys: Ints, count: int, read: ReadPart, where: str) -> Ints:
    """Return the keys that a run may contain; it does not contain the others.

    Parameters
    ----------
    keys : int64[k]
        Hashes, sorted, each once.
    count : int
        Parts of the filter.
    read : callable
    where : str
        Names the filter in errors.

    Returns
    -------
    int64[j]
        In the same order.
    """
    is_possible = np.zeros(len(keys), np.bool_)
    parts = part_of(keys, count)
    for part in distinct(parts).tolist():
        in_part = np.flatnonzero(parts == part)
        data = np.frombuffer(unpack_frame(read(part), where), np.uint8)
        bits = np.unpackbits(data).view(np.bool_)
        is_possible[in_part] = bits[_bits_of(keys[in_part], len(bits))].all(axis=1)
    return keys[is_possible]


def _bits_of(keys: Ints, bits: int) -> Ints:
    """Return which bits are set for keys: int64[k, _SET]."""
    mixed = as_unsigned(keys) * _GOLDEN
    lower, upper = mixed & np.uint64(0xFFFFFFFF), mixed >> np.uint64(32)
    steps = np.arange(_SET, dtype=np.uint64)
    spread = (upper[:, None] + steps * (lower[:, None] | np.uint64(1))) & np.uint64(0xFFFFFFFF)
    return ((spread * np.uint64(bits)) >> np.uint64(32)).astype(np.int64)
