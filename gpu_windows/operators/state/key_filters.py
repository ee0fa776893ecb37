"""Filters of the keys of a run, by a few bits of each: which keys it does not know for sure.

Source: B. H. Bloom, Space/time trade-offs in hash coding with allowable errors, 1970.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gpu_windows.operators.state.frames import pack_frame, unpack_frame
from gpu_windows.operators.state.hashes import distinct, part_of, unsigned

Ints = NDArray[np.int64]

#: Keys of a part, about; bits of a key, and how many of these are set: one key in twenty of which
#: a run knows nothing is taken for one that it knows.
_KEYS, _BITS, _SET = 16_384, 6, 4
#: To read a part takes about as long as so many blocks.
_BLOCKS = 4
#: Keys of a block up to which it may well be that none of them is taken for one that is known.
_FEW = 8
#: Odd, carries the lower bits of a hash into the upper ones: 2**64 divided by the golden ratio.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)

#: Returns a part of a filter by its number.
ReadPart = Callable[[int], bytes]


def build_filter(keys: Ints) -> list[bytes]:
    """Return the parts of a filter of some keys, given by their hashes."""
    count = -(-len(keys) // _KEYS)
    parts = part_of(keys, count)
    order = np.argsort(parts, kind="stable")
    edges = np.searchsorted(parts[order], np.arange(count + 1))
    frames = []
    for number in range(count):
        mine = keys[order[edges[number] : edges[number + 1]]]
        bits = np.zeros(max(1, len(mine) * _BITS // 8) * 8, np.bool_)
        bits[_bits_of(mine, len(bits))] = True
        frames.append(pack_frame(np.packbits(bits).tobytes()))
    return frames


def is_worth_reading(keys: Ints, parts: int, blocks: int) -> bool:
    """Whether to ask a filter of some parts for keys costs less than to read so many blocks."""
    if not parts or len(keys) > _FEW * blocks:
        return False
    return len(distinct(part_of(keys, parts))) * _BLOCKS <= blocks


def select_possible(keys: Ints, count: int, read: ReadPart, where: str) -> Ints:
    """Return those of some keys that may be known; the others are not.

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
        mine = np.flatnonzero(parts == part)
        data = np.frombuffer(unpack_frame(read(part), where), np.uint8)
        bits = np.unpackbits(data).view(np.bool_)
        is_possible[mine] = bits[_bits_of(keys[mine], len(bits))].all(axis=1)
    return keys[is_possible]


def _bits_of(keys: Ints, bits: int) -> Ints:
    """Return which bits are set for keys: int64[k, _SET]."""
    mixed = unsigned(keys) * _GOLDEN
    lower, upper = mixed & np.uint64(0xFFFFFFFF), mixed >> np.uint64(32)
    steps = np.arange(_SET, dtype=np.uint64)
    spread = (upper[:, None] + steps * (lower[:, None] | np.uint64(1))) & np.uint64(0xFFFFFFFF)
    return ((spread * np.uint64(bits)) >> np.uint64(32)).astype(np.int64)
