"""What the row-at-a-time operator remembers, as an Arrow table, and back.

A table has one row: a list for each kind of entry, in the order in which the operator holds them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from gpu_windows.errors import InvalidFunctionError
from gpu_windows.functions.process import Process
from gpu_windows.operators.by_row.contents import ContentsFormat
from gpu_windows.operators.by_row.functions import Contents
from gpu_windows.operators.by_row.merging import MergingWindows
from gpu_windows.operators.keyed.state import StateTable
from gpu_windows.operators.keyed.timers import Pane, TimerQueue
from gpu_windows.operators.keyed.values import key_part, stored_type
from gpu_windows.operators.state import store
from gpu_windows.query.window import WindowQuery
from gpu_windows.rules import LONG_MIN
from gpu_windows.windows import GlobalWindow, MergingWindowAssigner, TimeWindow, Window

#: What a store calls it.
KIND = "memory"
#: A value of a list.
Entry = dict[str, Any]

#: Attributes and their names in a store. Those stay as they are, whatever attributes are called: a
#: checkpoint that was written with them is to be read.
_TIMES = {"watermark": "watermark", "processing_time": "clock"}
_TIMERS = {"event_timers": "event_timers", "processing_timers": "clock_timers"}


class Memory:
    """The state of a `gpu_windows.operators.by_row.operator.ReferenceOperator`.

    Attributes
    ----------
    watermark, processing_time : int
        In ticks.
    event_timers, processing_timers : TimerQueue
    trigger_state, window_state, key_state : StateTable
        Of the trigger, and of a process function.
    contents : dict of Pane to Contents
        By the window under which they are kept, see `MergingWindows`.
    firings : Counter of Pane
        How often each pane has fired.
    merging : dict of key to MergingWindows
        The sessions of every key.
    """

    def __init__(self, query: WindowQuery) -> None:
        self._query = query
        function = query.function
        declared = function.function if isinstance(function, Process) else None
        name = type(declared).__name__
        self.watermark, self.processing_time = LONG_MIN, 0
        self.event_timers, self.processing_timers = TimerQueue(), TimerQueue()
        self.trigger_state = StateTable(type(query.trigger).__name__, query.trigger.state)
        self.window_state = StateTable(name, declared.window_state if declared else {})
        self.key_state = StateTable(name, declared.key_state if declared else {})
        self.contents: dict[Pane, Contents] = {}
        self.firings: Counter[Pane] = Counter()
        self.merging: dict[tuple[Hashable, ...], MergingWindows] = {}

    def size(self) -> dict[str, int]:
        """Return how many entries of each kind are held."""
        return {
            "windows": len(self.contents),
            "event_timers": len(self.event_timers),
            "processing_timers": len(self.processing_timers),
            "trigger_state": len(self.trigger_state),
            "window_state": len(self.window_state),
            "merging_windows": sum(map(len, self.merging.values())),
            "firings": len(self.firings),
        }

    # ---- as a table

    def to_table(self) -> pa.Table:
        """Return all of it.

        Raises
        ------
        InvalidFunctionError
            If what user code keeps is not of the type that it declared.
        """
        lists = {
            "contents": self._contents_entries(),
            "firings": ({**_of_pane(pane), "count": n} for pane, n in self.firings.items()),
            "merging": self._merging_entries(),
            **{stored: _of_timers(getattr(self, name)) for name, stored in _TIMERS.items()},
            **{name: _of_state(table) for name, table in self._state_tables.items()},
        }
        arrays = {
            stored: pa.array([getattr(self, name)], pa.int64()) for name, stored in _TIMES.items()
        }
        for name, dtype in self._types.items():
            entries = list(lists[name])
            try:
                arrays[name] = pa.array([entries], pa.list_(dtype))
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
                rule = f"what user code keeps must be of the types that it declared: {error}"
                raise InvalidFunctionError(rule, value=name) from error
        return pa.table(arrays)

    def restore(self, table: pa.Table) -> None:
        """Take all of it from a table; nothing is held yet."""
        found = {name: table.column(name)[0].as_py() for name in table.column_names}
        for name, stored in _TIMES.items():
            setattr(self, name, found[stored])
        for entry in found["contents"]:
            self.contents[self._pane(entry)] = self._format.contents(entry)
        for entry in found["firings"]:
            self.firings[self._pane(entry)] = entry["count"]
        for entry in found["merging"]:
            self._restore_merging(entry)
        for name, stored in _TIMERS.items():
            for entry in found[stored]:
                timer, queue = (entry["time"], self._pane(entry)), getattr(self, name)
                queue.register(*timer)
                if entry["silent"]:
                    queue.silence(*timer)
        for name, kept in self._state_tables.items():
            for entry in found[name]:
                pane = self._pane(entry)
                kept.load(pane.key if name == "key_state" else pane, entry)

    @property
    def _state_tables(self) -> dict[str, StateTable]:
        return {
            name: getattr(self, name) for name in ("trigger_state", "window_state", "key_state")
        }

    @property
    def _format(self) -> ContentsFormat:
        return ContentsFormat(self._query)

    @property
    def _types(self) -> dict[str, pa.DataType]:
        """Type of an entry of each kind."""
        query, long = self._query, pa.int64()
        keys = {
            f"key{i}": stored_type(query.schema.field(name).type)
            for i, name in enumerate(query.keys)
        }
        pane = {**keys, "start": long, "end": long}
        timer = {**pane, "time": long, "silent": pa.bool_()}
        fields = {
            "contents": {**pane, **self._format.fields},
            "firings": {**pane, "count": long},
            "merging": {**pane, "state_start": long, "state_end": long},
            **dict.fromkeys(_TIMERS.values(), timer),
            **{name: {**pane, **kept.fields} for name, kept in self._state_tables.items()},
        }
        return {name: pa.struct(list(each.items())) for name, each in fields.items()}

    # ---- entries

    def _contents_entries(self) -> Iterator[Entry]:
        entry = self._format.entry
        return ({**_of_pane(pane), **entry(each)} for pane, each in self.contents.items())

    def _merging_entries(self) -> Iterator[Entry]:
        for key, windows in self.merging.items():
            for window in windows:
                state = windows.state_window(window)
                assert state is not None, "a window has contents"
                yield {
                    **_of_pane(Pane(key, window)),
                    "state_start": state.start,
                    "state_end": state.end,
                }

    def _restore_merging(self, entry: Mapping[str, Any]) -> None:
        assigner, (key, window) = self._query.assigner, self._pane(entry)
        assert isinstance(assigner, MergingWindowAssigner)
        assert isinstance(window, TimeWindow)
        windows = self.merging.setdefault(key, MergingWindows(assigner))
        windows.load(window, TimeWindow(entry["state_start"], entry["state_end"]))

    def _pane(self, entry: Mapping[str, Any]) -> Pane:
        key = tuple(key_part(entry[f"key{i}"]) for i in range(len(self._query.keys)))
        start, end = entry["start"], entry["end"]
        window: Window = GlobalWindow() if start is None else TimeWindow(start, end)
        return Pane(key, window)


def memory_contents(table: pa.Table) -> store.Contents:
    """Tell what a table holds: windows with contents, their keys and time; timers of all."""
    windows = table.column("contents").combine_chunks().flatten()
    names = [field.name for field in windows.type]
    timers = (table.column(name).combine_chunks() for name in _TIMERS.values())
    counts = {"windows": len(windows), "timers": sum(len(each.flatten()) for each in timers)}
    if "rows" in names:
        counts["rows"] = len(windows.field("rows").flatten())
    return store.Contents(
        counts,
        [windows.field(name) for name in names[: names.index("start")]],
        pc.min(windows.field("start")).as_py(),
        pc.max(windows.field("end")).as_py(),
    )


def _of_pane(pane: Pane) -> Entry:
    return {**_of_key(pane.key), "start": pane.window.start, "end": pane.window.end}


def _of_key(key: tuple[Hashable, ...]) -> Entry:
    return {f"key{i}": value for i, value in enumerate(key)}


def _of_timers(timers: TimerQueue) -> Iterator[Entry]:
    return ({**_of_pane(pane), "time": time, "silent": silent} for time, pane, silent in timers)


def _of_state(table: StateTable) -> Iterator[Entry]:
    for where in table:
        place = _of_pane(where) if isinstance(where, Pane) else _of_key(where)
        yield {**place, **table.entry(where)}
