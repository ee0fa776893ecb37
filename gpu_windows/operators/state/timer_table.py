"""Timers of the keys of a table, in order of time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.state.buffer_spec import BufferSpec, no_prefix
from gpu_windows.operators.state.entries import Entries, RunContents, hashes_of
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.row_buffer import RowBuffer
from gpu_windows.operators.state.runs import Block, Run
from gpu_windows.rules import LONG_MAX

Ints = NDArray[np.int64]

#: Columns of the time of a timer, and of the hash of its key.
TIME, KEY = "time", "key"
_SCHEMA = pa.schema([(TIME, pa.int64()), (KEY, pa.int64())])


class Owner(Protocol):
    """The table of the keys' entries."""

    @property
    def new_contents(self) -> Sequence[RunContents]:
        """Contents that are in no run yet."""

    @property
    def new_bytes(self) -> int:
        """Their bytes in memory."""


class TimerTable(RowBuffer):
    """Timers of the keys of a table: each key's earliest.

    Parameters
    ----------
    owner : Owner
    log : StateLog
    name : str
    column : str
        Of the times, in entries.
    """

    def __init__(self, owner: Owner, log: StateLog, name: str, column: str) -> None:
        super().__init__(log, name, BufferSpec(TIME, no_prefix, in_order=True))
        self._owner, self._column = owner, column
        self._merged: list[tuple[Ints, Ints]] = []

    @property
    def first_times(self) -> list[int]:
        """The first live time of each run, and the first time of each part of the new contents."""
        times = [each.first_time(self._column) for each in self._owner.new_contents]
        return [*(run.live_from for run in self.runs), *(each for each in times if each < LONG_MAX)]

    @property
    def new_bytes(self) -> int:
        """1 if the owner has new entries, whose bytes it counts itself; else 0."""
        return int(self._owner.new_bytes > 0)

    def before_finish(self) -> None:
        """Save no numbers: the owner counts its keys."""

    def count_written(self, runs: Sequence[Run]) -> None:
        """Save no numbers: the owner counts its keys."""

    def begin_merge(self) -> None:
        """Reset the timers of merged entries."""
        self._merged = []

    def note_merged(self, entries: Entries) -> None:
        """Add the timers of entries that the owner writes."""
        times = entries.table.column(self._column).to_numpy()
        some = np.flatnonzero(times != LONG_MAX)
        if len(some):
            self._merged.append((hashes_of(entries)[some], times[some]))

    def merge(self, runs: Sequence[Run], *, with_new: bool, are_oldest: bool) -> Iterator[Block]:
        """Yield the timers of the entries that the owner has written just before."""
        del are_oldest
        merged, self._merged = self._merged, []
        if not merged:
            return
        hashes, times = (np.concatenate([each[part] for each in merged]) for part in (0, 1))
        order = np.lexsort((times, hashes))
        hashes, times = hashes[order], times[order]
        earliest = np.flatnonzero(np.diff(hashes, prepend=~hashes[:1]))
        times, hashes = times[earliest], hashes[earliest]
        if not with_new:  # entries of old runs: some of their timers have fired
            left = times >= min(run.live_from for run in runs)
            times, hashes = times[left], hashes[left]
        rows = pa.table([times, hashes], schema=_SCHEMA)
        yield from self._to_blocks(rows, self._block_bytes(rows.nbytes))
