"""State and timers of keys of process functions in memory, and their entries in a log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa

from gpu_windows.errors import InvalidFunctionError
from gpu_windows.functions.checked_results import CONVERSION_ERRORS, as_array
from gpu_windows.operators.keyed.entries import (
    KIND,
    entries_of,
    key_column,
    numbers_by_kind,
    select,
)
from gpu_windows.operators.keyed.timers import Timer, TimerQueue
from gpu_windows.operators.keyed.values import key_part, plain_type, stored_type
from gpu_windows.operators.process.open_function import OpenedFunction
from gpu_windows.operators.state.keyed_table import TIMERS
from gpu_windows.planning.kinds.process import ProcessQuery
from gpu_windows.rules import LONG_MIN

Key = tuple[Hashable, ...]
#: Keys, and the columns of their entries.
_KindEntries = tuple[Sequence[Key], Mapping[str, Sequence[Any]]]

#: The kinds of entries that are timers: the first of `KeyedState.kinds`.
_TIMERS = ("event_timers", "processing_timers")


class KeyedState:
    """State and timers of keys.

    Attributes
    ----------
    watermark, processing_time : int
        In ticks.
    event_timers, processing_timers : TimerQueue
    """

    def __init__(self, query: ProcessQuery, opened: OpenedFunction) -> None:
        self._query, self._opened = query, opened
        self.watermark, self.processing_time = LONG_MIN, 0
        self.event_timers: TimerQueue[Key] = TimerQueue()
        self.processing_timers: TimerQueue[Key] = TimerQueue()
        self._contents: dict[str, dict[Key, Any]] = {name: {} for name in opened.cells}

    def bind(self) -> None:
        """Bind the handles of the function to this state and its processing time."""
        self._opened.bind(self._contents, self.processing_time)

    def size(self) -> dict[str, int]:
        """Return the number of entries of each kind."""
        counts = {"event_timers": len(self.event_timers)}
        counts["processing_timers"] = len(self.processing_timers)
        return counts | {
            f"state {name}": len(contents) for name, contents in self._contents.items()
        }

    # ---- as entries

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of entries, by number."""
        return (*_TIMERS, *self._contents)

    @cached_property
    def types(self) -> Mapping[str, pa.DataType]:
        """The columns of entries, and their types."""
        schema = self._query.schema
        keys = [stored_type(schema.field(name).type) for name in self._query.keys]
        columns = {
            KIND: pa.int8(),
            **{key_column(number): dtype for number, dtype in enumerate(keys)},
            **dict.fromkeys((*TIMERS, "number"), pa.int64()),
            **{
                _column(name, part): dtype
                for name, cell in self._opened.cells.items()
                for part, dtype in cell.fields.items()
            },
        }
        return {name: plain_type(dtype) for name, dtype in columns.items()}

    @property
    def key_columns(self) -> list[str]:
        """The columns of keys."""
        return [key_column(number) for number in range(len(self._query.keys))]

    def counts(self, entries: pa.Table) -> Counter[str]:
        """Return the number of entries of each kind in a table."""
        names = (*_TIMERS, *(f"state {name}" for name in self._contents))
        return Counter(dict(zip(names, numbers_by_kind(entries, len(names)), strict=True)))

    def entries(self) -> pa.Table:
        """Return state and timers of all keys.

        Raises
        ------
        InvalidFunctionError
            If state is not of the type that the function declared.
        """
        self.bind()
        tables = [
            self._table(number, *found)
            for number, found in enumerate(self._collect_entries())
            if found[0]
        ]
        return pa.concat_tables([pa.schema(self.types.items()).empty_table(), *tables])

    def restore(self, entries: pa.Table) -> None:
        """Load entries of keys that have none in memory."""
        self.bind()
        for number, kind in enumerate(self.kinds):
            some = select(entries, number)
            if len(some) == 0:
                continue
            keys = self._keys(some)
            if number < len(_TIMERS):  # by number, because a declared state may have such a name
                self._load_timers(getattr(self, kind), keys, some.column(TIMERS[number]), some)
            else:
                self._load_state(kind, keys, some)

    def _keys(self, entries: pa.Table) -> list[Key]:
        columns = (map(key_part, entries.column(name).to_pylist()) for name in self.key_columns)
        return [*zip(*columns, strict=True)]

    def _load_timers(
        self, queue: TimerQueue[Key], keys: list[Key], times: pa.ChunkedArray, entries: pa.Table
    ) -> None:
        numbers = entries.column("number").to_pylist()
        for time, key, number in zip(times.to_pylist(), keys, numbers, strict=True):
            queue.load(Timer(time, key, number, silent=False))

    def _load_state(self, name: str, keys: list[Key], entries: pa.Table) -> None:
        cell = self._opened.cells[name]
        columns = (entries.column(_column(name, part)).to_pylist() for part in cell.fields)
        for key, entry in zip(keys, zip(*columns, strict=True), strict=True):
            cell.load(key, entry)

    def _collect_entries(self) -> Iterator[_KindEntries]:
        """Yield the entries of each kind."""
        for kind, at in zip(_TIMERS, TIMERS, strict=True):
            timers = [*getattr(self, kind)]
            columns = {at: [t.time for t in timers], "number": [t.number for t in timers]}
            yield [t.pane for t in timers], columns
        for name, cell in self._opened.cells.items():
            contents = [*cell.by_key.values()]
            parts = zip(*map(cell.entry, contents), strict=True)
            entry = {_column(name, part): each for part, each in zip(cell.fields, parts)}  # noqa: B905 - there may be none
            yield [*self._contents[name]], {**entry, TIMERS[1]: [*map(cell.expiry, contents)]}

    def _table(
        self, number: int, keys: Sequence[Key], columns: Mapping[str, Sequence[Any]]
    ) -> pa.Table:
        """Return the entries of a kind."""
        parts = {name: [key[i] for key in keys] for i, name in enumerate(self.key_columns)}
        try:
            arrays = {
                name: as_array(values, self.types[name])
                for name, values in {**parts, **columns}.items()
            }
        except (*CONVERSION_ERRORS, OverflowError) as error:
            rule = f"state of user code must have its declared types: {error}"
            raise InvalidFunctionError(rule, value=self.kinds[number]) from error
        return entries_of(number, arrays, self.types)


def _column(state: str, part: str) -> str:
    """Return the column of a part of state; the prefix keeps users' names apart from ours."""
    return f"state {state} {part}"
