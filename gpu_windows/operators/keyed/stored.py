"""What an operator remembers of keys in a store, by key: what a call needs is in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.keyed.values import stored_column
from gpu_windows.operators.state.entries import Entries
from gpu_windows.operators.state.head import HEAD, HELD, held_of, numbers_of, save_head
from gpu_windows.operators.state.recalled import Recalled
from gpu_windows.operators.state.run_index import Kinds
from gpu_windows.operators.state.runs import HASH, KeyRuns
from gpu_windows.operators.state.store import Store

Ints = NDArray[np.int64]

#: What a store calls the entries, and the times that keys wait for.
KEYED = "keyed state"
AT = ("keyed state at", "keyed state at processing time")
#: The numbers that are saved, under these names.
_KNOWN = ("watermark", "clock", "event timers set", "processing timers set")
_KEYS = "keys"


class Numbered(Protocol):
    """Timers, of which the next one has a number."""

    next_number: int


class KeyedMemory(Protocol):
    """What an operator remembers of keys, as entries: a row each, with their key's columns.

    Attributes
    ----------
    watermark, processing_time : int
        In ticks.
    """

    watermark: int
    processing_time: int

    @property
    def event_timers(self) -> Numbered:
        """Timers of event time."""

    @property
    def processing_timers(self) -> Numbered:
        """Timers of processing time."""

    @property
    def types(self) -> Mapping[str, pa.DataType]:
        """The columns of entries, and their types."""

    @property
    def key_columns(self) -> list[str]:
        """Those of the key."""

    def entries(self) -> pa.Table:
        """Return all that is of keys."""

    def restore(self, entries: pa.Table) -> None:
        """Take entries of keys of which nothing is held yet."""

    def counts(self, entries: pa.Table) -> Counter[str]:
        """Return how many entries of each kind there are."""


class Former(Protocol):
    """How an older version stored the memory of an operator (a module may be one)."""

    @property
    def WHERE(self) -> tuple[str, int]:  # noqa: N802 - a constant of a module
        """Kind and bucket of its table."""

    def is_one(self, table: pa.Table) -> bool:
        """Tell whether this is one of its tables."""

    def restore(self, memory: Any, table: pa.Table) -> None:
        """Give a memory what a table holds."""


class StoredMemory:
    """Which keys are in memory and which are in a store.

    Parameters
    ----------
    memory : KeyedMemory
        Empty; what is needed is added.
    store : Store
    former : Former, optional
        How an older version stored it.

    Raises
    ------
    StateError
        If the store holds anything else.
    """

    def __init__(self, memory: KeyedMemory, store: Store, former: Former | None = None) -> None:
        self._memory, self._store, self._former = memory, store, former
        self._stored: Counter[str] = Counter()
        self._taken: Counter[str] = Counter()
        formerly = () if former is None else (former.WHERE,)
        index = self._restored(store.load_first(*HEAD, *formerly))
        # entries keep no rows beside them
        runs = KeyRuns(store, Kinds(KEYED, "", AT), index, self._stored.pop(_KEYS, 0))
        self._recalled = Recalled(runs)

    def _restored(self, found: pa.Table | None) -> pa.Table:
        """Take up what is known of all keys; return the index of what there is of each."""
        if found is None:
            return KeyRuns.nothing()
        memory, former = self._memory, self._former
        if former is not None and former.is_one(found):
            former.restore(memory, found)
            self._store.remove(*former.WHERE)
            return KeyRuns.nothing()
        memory.watermark, memory.processing_time, *numbers = numbers_of(found, _KNOWN)
        memory.event_timers.next_number, memory.processing_timers.next_number = numbers
        self._stored.update(held_of(found))
        return found

    # ---- what a call needs

    def load_keys(self, keys: Sequence[pa.Array | pa.ChunkedArray]) -> None:
        """Have all of some keys in memory, given by their columns."""
        self._take(self._recalled.of(self._hash(keys)))

    def load_due(self, until: int, *, in_processing_time: bool = False) -> None:
        """Have all in memory of keys that have a timer up to some time."""
        self._take(self._recalled.due(until, in_processing_time=in_processing_time))

    def _take(self, found: Entries | None) -> None:
        if found is None:
            return
        self._taken.update(self._memory.counts(found.table))
        self._memory.restore(found.table)

    def _hash(self, keys: Sequence[pa.Array | pa.ChunkedArray]) -> Ints:
        """Return the hash of each key."""
        memory = self._memory
        encoder = KeyEncoder([memory.types[name] for name in memory.key_columns])
        codes = encoder.encode([*map(stored_column, keys)])
        return encoder.hashes()[codes]

    # ---- what a call leaves

    def save(self) -> None:
        """Write the entries of the keys that a call has looked for.

        Raises
        ------
        InvalidFunctionError
            If what user code keeps is not of the type that it declared.
        """
        memory, table = self._memory, self._memory.entries()
        hashes = self._hashes(table)
        order = np.argsort(hashes, kind="stable")  # so that the first ones are of all kinds
        table, hashes = table.take(pa.array(order)), hashes[order]
        self._recalled.save(Entries(table.append_column(HASH, pa.array(hashes))))
        now = memory.counts(table)
        self._stored.subtract(self._taken)
        self._stored.update(now)
        self._taken = now
        times = memory.watermark, memory.processing_time
        numbers = (q.next_number for q in (memory.event_timers, memory.processing_timers))
        held = {f"{name}{HELD}": count for name, count in self._held.items()}
        known = dict(zip(_KNOWN, (*times, *numbers), strict=True))
        save_head(self._store, {**known, **held}, self._recalled.runs.index())

    def _hashes(self, entries: pa.Table) -> Ints:
        return self._hash([entries.column(name) for name in self._memory.key_columns])

    @property
    def _held(self) -> Mapping[str, int]:
        """How much the store holds, and for how many keys."""
        return {
            _KEYS: self._recalled.runs.keys,
            **{name: n for name, n in self._stored.items() if n},
        }

    def next_timers(self) -> tuple[int | None, int | None]:
        """Return the times of the earliest timers of what is stored."""
        return self._recalled.next_timers()

    def note(self, name: str, count: int) -> None:
        """Have the head tell how much there is of what the operator keeps besides."""
        self._stored[name] = count

    def noted(self, name: str) -> int:
        """Return how much there is of something, as `note` was told; 0 if it was told nothing."""
        return self._stored[name]

    def size(self) -> Counter[str]:
        """Return how many entries of each kind are in the store and not in memory."""
        size = Counter(self._stored)
        size.subtract(self._taken)
        return size
