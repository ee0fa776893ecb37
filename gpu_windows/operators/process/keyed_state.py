"""State and timers of keys of process functions in memory, and their entries in a log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from gpu_windows.operators.keyed.backend import Key, KeyedBackend, select
from gpu_windows.operators.keyed.timers import Timer, TimerQueue
from gpu_windows.operators.process.open_function import OpenedFunction
from gpu_windows.operators.state.keyed_table import TIMERS
from gpu_windows.planning.kinds.process import ProcessQuery

#: Name of the kind of some entries, their keys, and their other columns.
_KindEntries = tuple[str, Sequence[Key], Mapping[str, Sequence[Any]]]

#: The kinds of entries that are timers: the first ones. Then come the declared states.
_TIMERS = ("event_timers", "processing_timers")


class KeyedState(KeyedBackend):
    """State and timers of keys."""

    event_timers: TimerQueue[Key]
    processing_timers: TimerQueue[Key]

    def __init__(self, query: ProcessQuery, opened: OpenedFunction) -> None:
        super().__init__(query, (*_TIMERS, *(f"state {name}" for name in opened.cells)))
        self._opened = opened
        self.event_timers, self.processing_timers = TimerQueue(), TimerQueue()
        self._contents: dict[str, dict[Key, Any]] = {name: {} for name in opened.cells}

    def bind(self) -> None:
        """Bind the handles of the function to this state and its processing time."""
        self._opened.bind(self._contents, self.processing_time)

    def size(self) -> dict[str, int]:
        """Return the number of entries of each kind."""
        timers = len(self.event_timers), len(self.processing_timers)
        return dict(zip(self._kinds, (*timers, *map(len, self._contents.values())), strict=True))

    # ---- as entries

    @property
    def _columns(self) -> Mapping[str, pa.DataType]:
        parts = {
            _column(name, part): dtype
            for name, cell in self._opened.cells.items()
            for part, dtype in cell.fields.items()
        }
        return {"number": pa.int64(), **parts}

    def entries(self) -> pa.Table:
        """Return state and timers of all keys."""
        self.bind()
        return self._concat(
            self._table_of(kind, *found)
            for kind, found in enumerate(self._collect_entries())
            if found[1]
        )

    def restore(self, entries: pa.Table) -> None:
        """Load entries of keys that have none in memory."""
        self.bind()
        queues = self.event_timers, self.processing_timers
        for kind, (queue, at) in enumerate(zip(queues, TIMERS, strict=True)):
            _load_timers(queue, *self._select(entries, kind), at)
        for kind, name in enumerate(self._opened.cells, len(_TIMERS)):
            self._load_state(name, *self._select(entries, kind))

    def _select(self, entries: pa.Table, kind: int) -> tuple[list[Key], pa.Table]:
        """Return keys and entries of a kind."""
        some = select(entries, kind)
        return self._keys_of(some), some

    def _load_state(self, name: str, keys: list[Key], entries: pa.Table) -> None:
        cell = self._opened.cells[name]
        columns = (entries.column(_column(name, part)).to_pylist() for part in cell.fields)
        for key, entry in zip(keys, zip(*columns, strict=True), strict=True):
            cell.load(key, entry)

    def _collect_entries(self) -> Iterator[_KindEntries]:
        """Yield the entries of each kind."""
        queues = self.event_timers, self.processing_timers
        for kind, queue, at in zip(_TIMERS, queues, TIMERS, strict=True):
            timers = [*queue]
            columns = {at: [t.time for t in timers], "number": [t.number for t in timers]}
            yield kind, [t.pane for t in timers], columns
        for name, cell in self._opened.cells.items():
            entries = [*map(cell.entry, cell.by_key.values())]
            parts = zip(*entries, strict=True)
            values = {_column(name, part): each for part, each in zip(cell.fields, parts)}  # noqa: B905 - there may be none
            expiry = [*map(cell.expiry, entries)]
            yield name, [*self._contents[name]], {**values, TIMERS[1]: expiry}


def _load_timers(queue: TimerQueue[Key], keys: list[Key], entries: pa.Table, at: str) -> None:
    times, numbers = (entries.column(name).to_pylist() for name in (at, "number"))
    for time, key, number in zip(times, keys, numbers, strict=True):
        queue.load(Timer(time, key, number, silent=False))


def _column(state: str, part: str) -> str:
    """Return the column of a part of state; the prefix keeps users' names apart from ours."""
    return f"state {state} {part}"
