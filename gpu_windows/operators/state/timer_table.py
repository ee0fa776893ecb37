"""The times that keys of a table wait for, in order, beside the table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.state.buffer_spec import BufferSpec, one_place
from gpu_windows.operators.state.entries import Entries, SavedEntries, hashes_of
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.row_buffer import RowBuffer
from gpu_windows.operators.state.runs import Block, Run
from gpu_windows.rules import LONG_MAX

Ints = NDArray[np.int64]

#: The columns of a time and of the hash of the key that waits for it.
TIME, KEY = "time", "key"
_SCHEMA = pa.schema([(TIME, pa.int64()), (KEY, pa.int64())])


class Owner(Protocol):
    """What has the entries of the keys."""

    @property
    def saved(self) -> Sequence[SavedEntries]:
        """What is in no run yet."""

    @property
    def new_bytes(self) -> int:
        """Its bytes in memory."""


class TimerTable(RowBuffer):
    """The times that keys of a table wait for: each key's earliest.

    Parameters
    ----------
    owner : Owner
    log : StateLog
    name : str
    column : str
        Of the times, in entries.
    """

    def __init__(self, owner: Owner, log: StateLog, name: str, column: str) -> None:
        super().__init__(log, name, BufferSpec(TIME, one_place, in_order=True))
        self._owner, self._column = owner, column
        self._merged: list[tuple[Ints, Ints]] = []

    @property
    def first_times(self) -> list[int]:
        """The first time of each run, and of what is saved since."""
        times = [each.first_time(self._column) for each in self._owner.saved]
        return [*(run.since for run in self.runs), *(each for each in times if each < LONG_MAX)]

    @property
    def new_bytes(self) -> int:
        """1 if its table has new entries, whose bytes the table counts; else 0."""
        return int(self._owner.new_bytes > 0)

    def before_finish(self) -> None:
        """Keep no numbers: the table counts its keys."""

    def count_written(self, runs: Sequence[Run]) -> None:
        """Keep no numbers: the table counts its keys."""

    def begin_merge(self) -> None:
        """Forget what was merged before."""
        self._merged = []

    def note_merged(self, entries: Entries) -> None:
        """Note the times of entries that are written."""
        times = entries.table.column(self._column).to_numpy()
        some = np.flatnonzero(times != LONG_MAX)
        if len(some):
            self._merged.append((hashes_of(entries)[some], times[some]))

    def merge(self, runs: Sequence[Run], *, with_new: bool, are_oldest: bool) -> Iterator[Block]:
        """Yield the times of the entries that its table has written just before."""
        del are_oldest
        merged, self._merged = self._merged, []
        if not merged:
            return
        hashes, times = (np.concatenate([each[part] for each in merged]) for part in (0, 1))
        order = np.lexsort((times, hashes))
        hashes, times = hashes[order], times[order]
        earliest = np.flatnonzero(np.diff(hashes, prepend=~hashes[:1]))
        times, hashes = times[earliest], hashes[earliest]
        if not with_new:  # entries that are written again alone: some of their times are over
            left = times >= min(run.since for run in runs)
            times, hashes = times[left], hashes[left]
        rows = pa.table([times, hashes], schema=_SCHEMA)
        yield from self._to_blocks(rows, self._block_bytes(rows.nbytes))
