"""What an operator remembers of keys in a store, by key: what a call needs is in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.keyed.values import stored_column
from gpu_windows.operators.state.entries import Entries
from gpu_windows.operators.state.keyed_table import HASH, KeyedTable
from gpu_windows.operators.state.log import StateLog

Ints = NDArray[np.int64]

#: What a log calls the entries.
KEYED = "keyed state"
#: The numbers that are saved, and whose they are.
_OWNER = "keys"
_NUMBERS = ("watermark", "clock", "next event timer", "next processing timer")


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


class StoredMemory:
    """Which keys are in memory and which are in a log.

    Parameters
    ----------
    memory : KeyedMemory
        Empty; what is needed is added.
    log : StateLog

    Raises
    ------
    StateError
        If the log holds anything else.
    """

    def __init__(self, memory: KeyedMemory, log: StateLog) -> None:
        self._memory, self._log = memory, log
        self._table = KeyedTable(log, KEYED, lambda each: memory.counts(each.table))
        numbers = log.numbers(_OWNER, _NUMBERS)
        if numbers is not None:
            memory.watermark, memory.processing_time, *timers = numbers
            memory.event_timers.next_number, memory.processing_timers.next_number = timers

    # ---- what a call needs

    def load_keys(self, keys: Sequence[pa.Array | pa.ChunkedArray]) -> None:
        """Have all of some keys in memory, given by their columns."""
        self._restore(self._table.load(self._hash(keys)))

    def load_due(self, until: int, *, in_processing_time: bool = False) -> None:
        """Have all in memory of keys that have a timer up to some time."""
        self._restore(self._table.load_due(until, in_processing_time=in_processing_time))

    def _restore(self, entries: Entries | None) -> None:
        if entries is not None:
            self._memory.restore(entries.table)

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
        hashes = self._hash([table.column(name) for name in memory.key_columns])
        self._table.save(Entries(table.append_column(HASH, pa.array(hashes))))
        times = memory.watermark, memory.processing_time
        timers = (each.next_number for each in (memory.event_timers, memory.processing_timers))
        self._log.set_numbers(_OWNER, dict(zip(_NUMBERS, (*times, *timers), strict=True)))

    def next_timers(self) -> tuple[int | None, int | None]:
        """Return the times of the earliest timers of what is stored."""
        return self._table.next_timers()

    def size(self) -> Counter[str]:
        """Return how many entries of each kind are in the log and not in memory."""
        return self._table.not_loaded
