"""Filters of the keys of a run, by a few bits of each: which keys it does not know for sure.

Source: B. H. Bloom, Space/time trade-offs in hash coding with allowable errors, 1970.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.state.hashes import distinct, part_of, unsigned
from gpu_windows.operators.state.store import Contents, Store, to_blob

Ints = NDArray[np.int64]

#: Keys of a blob, about; bits of a key, and how many of these are set: one key in twenty of which
#: a run knows nothing is taken for one that it knows.
_KEYS, _BITS, _SET = 16_384, 6, 4
#: To read a blob takes about as long as so many blocks.
_BLOCKS = 4
#: Keys of a block up to which it may well be that none of them is taken for one that is known.
_FEW = 8
#: Odd, carries the lower bits of a hash into the upper ones: 2**64 divided by the golden ratio.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class KeyFilter:
    """A filter of keys in blobs, by the upper bits of their hashes.

    Parameters
    ----------
    kind : str
        What the store calls the blobs.
    first : int
        The number of the first one.
    bytes : tuple of int
        How large each is; none where the run has no filter.
    """

    kind: str
    first: int
    bytes: tuple[int, ...] = ()

    @classmethod
    def write(cls, store: Store, kind: str, first: int, keys: Ints) -> KeyFilter:
        """Put a filter of some keys into a store, given by hashes, from the blob ``first`` on."""
        count = -(-len(keys) // _KEYS)
        sizes = []
        for number, mine in _by_part(keys, count):
            bits = np.zeros(max(1, len(mine) * _BITS // 8) * 8, np.bool_)
            bits[_places(mine, len(bits))] = True
            blob = to_blob(pa.table({"bits": np.packbits(bits)}))
            store.write(kind, first + number, blob, held=0)
            sizes.append(len(blob))
        return cls(kind, first, tuple(sizes))

    def is_worth_it(self, keys: Ints, blocks: int) -> bool:
        """Tell whether to ask for some keys is less than to look into so many blocks for them."""
        if not self.bytes or len(keys) > _FEW * blocks:
            return False
        return len(distinct(part_of(keys, len(self.bytes)))) * _BLOCKS <= blocks

    def may_have(self, store: Store, keys: Ints) -> Ints:
        """Return those of some keys that may be there; of the others none is.

        Parameters
        ----------
        store : Store
        keys : int64[k]
            Hashes, sorted, each once.

        Returns
        -------
        int64[j]
            In the same order.
        """
        is_there = np.zeros(len(keys), np.bool_)
        parts = part_of(keys, len(self.bytes))
        for part in distinct(parts).tolist():
            mine = np.flatnonzero(parts == part)
            table = store.load_listed(self.kind, self.first + part)
            bits = np.unpackbits(table["bits"].to_numpy()).view(np.bool_)
            is_there[mine] = bits[_places(keys[mine], len(bits))].all(axis=1)
        return keys[is_there]

    def remove(self, store: Store) -> None:
        """Forget it, unread."""
        for number, size in enumerate(self.bytes):
            store.remove(self.kind, self.first + number, held=size)


def _by_part(keys: Ints, count: int) -> Iterator[tuple[int, Ints]]:
    """Yield the number of each blob, and its keys."""
    parts = part_of(keys, count)
    order = np.argsort(parts, kind="stable")
    edges = np.searchsorted(parts[order], np.arange(count + 1))
    for number in range(count):
        yield number, keys[order[edges[number] : edges[number + 1]]]


def _places(keys: Ints, bits: int) -> Ints:
    """Return which bits are set for keys: int64[k, _SET]."""
    mixed = unsigned(keys) * _GOLDEN
    lower, upper = mixed & np.uint64(0xFFFFFFFF), mixed >> np.uint64(32)
    steps = np.arange(_SET, dtype=np.uint64)
    spread = (upper[:, None] + steps * (lower[:, None] | np.uint64(1))) & np.uint64(0xFFFFFFFF)
    return ((spread * np.uint64(bits)) >> np.uint64(32)).astype(np.int64)


def filter_kind(kind: str) -> str:
    """Return what a store calls the filters of runs whose blocks it calls ``kind``."""
    return f"{kind} filters"


def filter_contents(table: pa.Table) -> Contents:
    """Tell what a blob holds."""
    return Contents({"bytes": len(table)})
