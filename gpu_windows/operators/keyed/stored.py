"""Keyed state in a log: a call loads the keys that it touches, and saves them again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.keyed.backend import KeyedBackend
from gpu_windows.operators.keyed.values import stored_column
from gpu_windows.operators.state.entries import Entries
from gpu_windows.operators.state.keyed_table import HASH, KeyedTable
from gpu_windows.operators.state.log import StateLog

Ints = NDArray[np.int64]

#: Name of the table in the log.
KEYED = "keyed state"
#: Owner and names of the numbers saved in the log.
_OWNER = "keys"
_NUMBERS = ("watermark", "clock", "next event timer", "next processing timer")


class StoredKeyedState:
    """Keyed state of which some keys are in memory and all others in a log.

    Parameters
    ----------
    backend : KeyedBackend
        Empty; the keys that calls need are loaded into it.
    log : StateLog

    Attributes
    ----------
    table : KeyedTable
        The keys in the log.

    Raises
    ------
    StateError
        If the log has the state of another operator.
    """

    def __init__(self, backend: KeyedBackend, log: StateLog) -> None:
        self._backend, self._log = backend, log
        self.table = KeyedTable(log, KEYED, lambda each: backend.counts(each.table))
        numbers = log.numbers(_OWNER, _NUMBERS)
        if numbers is not None:
            backend.watermark, backend.processing_time, *timers = numbers
            backend.event_timers.next_number, backend.processing_timers.next_number = timers

    # ---- loading

    def load_keys(self, keys: Sequence[pa.Array | pa.ChunkedArray]) -> None:
        """Load the state of some keys, given by their columns."""
        self._restore(self.table.load(self._hash(keys)))

    def load_due(self, until: int, *, in_processing_time: bool = False) -> None:
        """Load the state of the keys that have a timer up to some time."""
        self._restore(self.table.load_due(until, in_processing_time=in_processing_time))

    def _restore(self, entries: Entries | None) -> None:
        if entries is not None:
            self._backend.restore(entries.table)

    def _hash(self, keys: Sequence[pa.Array | pa.ChunkedArray]) -> Ints:
        """Return the hash of each key."""
        backend = self._backend
        encoder = KeyEncoder([backend.types[name] for name in backend.key_columns])
        codes = encoder.encode([*map(stored_column, keys)])
        return encoder.hashes()[codes]

    # ---- saving

    def save(self) -> None:
        """Write the entries of the loaded keys.

        Raises
        ------
        InvalidFunctionError
            If state of user code is not of its declared type.
        """
        backend, table = self._backend, self._backend.entries()
        hashes = self._hash([table.column(name) for name in backend.key_columns])
        self.table.save(Entries(table.append_column(HASH, pa.array(hashes))))
        times = backend.watermark, backend.processing_time
        timers = (each.next_number for each in (backend.event_timers, backend.processing_timers))
        self._log.set_numbers(_OWNER, dict(zip(_NUMBERS, (*times, *timers), strict=True)))
