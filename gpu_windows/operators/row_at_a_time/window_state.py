"""State of the row-at-a-time operator in memory, and its conversion to entries and back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa

from gpu_windows.errors import InvalidFunctionError
from gpu_windows.functions.process import Process
from gpu_windows.operators.keyed.entries import key_column
from gpu_windows.operators.keyed.state import StateTable
from gpu_windows.operators.keyed.timers import Pane, Timer, TimerQueue
from gpu_windows.operators.keyed.values import key_part
from gpu_windows.operators.row_at_a_time.changes import EmittedWindows
from gpu_windows.operators.row_at_a_time.contents import ContentsFormat
from gpu_windows.operators.row_at_a_time.entries import (
    EMITTED,
    KINDS,
    TIMES,
    counts_of,
    entries_of,
    select,
    state_column,
    types_of,
)
from gpu_windows.operators.row_at_a_time.functions import Contents
from gpu_windows.operators.row_at_a_time.merging import MergingWindows
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.rules import LONG_MIN
from gpu_windows.vocabulary.windows import GlobalWindow, MergingWindowAssigner, TimeWindow, Window

#: Panes, and the other columns of their entries.
PaneEntries = tuple[Sequence[Pane], Mapping[str, Sequence[Any]]]
Key = tuple[Hashable, ...]


class WindowState:
    """The state of a `gpu_windows.operators.row_at_a_time.operator.ReferenceOperator`.

    Attributes
    ----------
    watermark, processing_time : int
        In ticks.
    event_timers, processing_timers : TimerQueue
    trigger_state, window_state, key_state : StateTable
        Of the trigger, and of a process function.
    contents : dict of Pane to Contents
        By state window, see `MergingWindows`.
    firings : Counter of Pane
        How often each pane has fired.
    merging : dict of key to MergingWindows
        The sessions of every key.
    emitted : EmittedWindows
        Windows that have a row in the result table of a changelog.
    """

    def __init__(self, query: WindowQuery) -> None:
        self._query = query
        function = query.function
        user_function = function.function if isinstance(function, Process) else None
        name = type(user_function).__name__
        self.watermark, self.processing_time = LONG_MIN, 0
        self.event_timers: TimerQueue[Pane] = TimerQueue()
        self.processing_timers: TimerQueue[Pane] = TimerQueue()
        self.trigger_state = StateTable(type(query.trigger).__name__, query.trigger.state)
        self.window_state = StateTable(name, user_function.window_state if user_function else {})
        self.key_state = StateTable(name, user_function.key_state if user_function else {})
        self.contents: dict[Pane, Contents] = {}
        self.firings: Counter[Pane] = Counter()
        self.merging: dict[Key, MergingWindows] = {}
        self.emitted = EmittedWindows(is_enabled=query.changes)

    def size(self) -> dict[str, int]:
        """Return the number of entries of each kind in memory."""
        return {
            "windows": len(self.contents),
            "event_timers": len(self.event_timers),
            "processing_timers": len(self.processing_timers),
            "trigger_state": len(self.trigger_state),
            "window_state": len(self.window_state),
            "merging_windows": sum(map(len, self.merging.values())),
            "firings": len(self.firings),
            **({"emitted": len(self.emitted)} if self._query.changes else {}),
        }

    def state_pane(self, pane: Pane) -> Pane:
        """Return the pane under which the contents of a window are stored."""
        if pane.key not in self.merging:
            return pane
        window = self.merging[pane.key].state_window(pane.window)
        return pane if window is None else Pane(pane.key, window)

    # ---- as entries

    def entries(self) -> pa.Table:
        """Return the entries of all keys; see `gpu_windows.operators.row_at_a_time.entries`.

        Raises
        ------
        InvalidFunctionError
            If state of user code is not of its declared type.
        """
        found = zip(KINDS, self._collect_entries(), strict=True)
        tables = [self._table(kind, *of_kind) for kind, of_kind in found if of_kind[0]]
        return pa.concat_tables([pa.schema(self.types.items()).empty_table(), *tables])

    def counts(self, entries: pa.Table) -> Counter[str]:
        """Return the number of entries of each kind, and of the rows in windows."""
        return counts_of(entries)

    def restore(self, entries: pa.Table) -> None:
        """Load entries of keys that have none in memory."""
        loads = (
            self._load_contents,
            self._load_firings,
            self._load_merging,
            self._load_timers,
            self._load_timers,
            *(self._load_state for _ in self._states),
            self._load_emitted,
        )
        for kind, load in zip(KINDS, loads, strict=True):
            some = select(entries, kind)
            if len(some):
                load(kind, self._panes(some), some)

    @property
    def _states(self) -> dict[str, StateTable]:
        return {name: getattr(self, name) for name in KINDS if name.endswith("state")}

    @cached_property
    def _format(self) -> ContentsFormat:
        return ContentsFormat(self._query)

    @cached_property
    def types(self) -> dict[str, pa.DataType]:
        """The columns of entries, and their types."""
        return types_of(self._query, self._states)

    @property
    def key_columns(self) -> list[str]:
        """The columns of keys."""
        return [key_column(number) for number in range(len(self._query.keys))]

    def _table(
        self, kind: str, panes: Sequence[Pane], columns: Mapping[str, Sequence[Any]]
    ) -> pa.Table:
        """Return the entries of a kind."""
        keys = {name: [p.key[i] for p in panes] for i, name in enumerate(self.key_columns)}
        bounds = {name: [getattr(p.window, name) for p in panes] for name in ("start", "end")}
        try:
            arrays = {
                name: pa.array(values, self.types[name])
                for name, values in {**keys, **bounds, **columns}.items()
            }
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
            rule = f"state of user code must have its declared types: {error}"
            raise InvalidFunctionError(rule, value=kind) from error
        return entries_of(kind, arrays, self.types)

    def _panes(self, entries: pa.Table) -> list[Pane]:
        """Return the panes of entries; state of a key has no window, so it gets any."""
        columns = (map(key_part, entries.column(name).to_pylist()) for name in self.key_columns)
        windows = _windows(entries, ("start", "end"))
        return [*map(Pane, zip(*columns, strict=True), windows)]

    # ---- kinds of entries

    def _collect_entries(self) -> Iterator[PaneEntries]:
        """Yield the entries of each kind."""
        fields, entry = self._format.fields, self._format.entry
        contents = [entry(each) for each in self.contents.values()]
        yield [*self.contents], {name: [each[name] for each in contents] for name in fields}
        yield [*self.firings], {"count": [*self.firings.values()]}
        yield self._merging_entries()
        for kind in TIMES:
            timers = [*getattr(self, kind)]
            columns = {name: [getattr(t, name) for t in timers] for name in ("number", "silent")}
            yield [t.pane for t in timers], {TIMES[kind]: [t.time for t in timers], **columns}
        for kind, state in self._states.items():
            entries = [state.entry(where) for where in state]
            yield (
                [where if isinstance(where, Pane) else _of_key(where) for where in state],
                {state_column(kind, name): [e[name] for e in entries] for name in state.fields},
            )
        yield self._emitted_entries()

    def _merging_entries(self) -> PaneEntries:
        panes, states = [], []
        for key, windows in self.merging.items():
            for window in windows:
                state = windows.state_window(window)
                assert state is not None, "a window has contents"
                panes.append(Pane(key, window))
                states.append(state)
        if not self._query.merges:
            return panes, {}
        return panes, {
            "state_start": [window.start for window in states],
            "state_end": [window.end for window in states],
        }

    def _emitted_entries(self) -> PaneEntries:
        pairs = [*self.emitted]
        bounds = ([window.start for _, window in pairs], [window.end for _, window in pairs])
        columns = dict(zip(EMITTED, bounds, strict=True)) if self._query.changes else {}
        return [pane for pane, _ in pairs], columns

    def _load_emitted(self, kind: str, panes: list[Pane], entries: pa.Table) -> None:
        del kind
        for pane, window in zip(panes, _windows(entries, EMITTED), strict=True):
            self.emitted.load(pane, window)

    def _load_contents(self, kind: str, panes: list[Pane], entries: pa.Table) -> None:
        del kind
        rows = entries.select(list(self._format.fields)).to_pylist()
        for pane, row in zip(panes, rows, strict=True):
            self.contents[pane] = self._format.contents(row)

    def _load_firings(self, kind: str, panes: list[Pane], entries: pa.Table) -> None:
        del kind
        self.firings.update(dict(zip(panes, entries.column("count").to_pylist(), strict=True)))

    def _load_merging(self, kind: str, panes: list[Pane], entries: pa.Table) -> None:
        del kind
        assigner = self._query.assigner
        assert isinstance(assigner, MergingWindowAssigner)
        states = (entries.column(name).to_pylist() for name in ("state_start", "state_end"))
        for (key, window), *state in zip(panes, *states, strict=True):
            assert isinstance(window, TimeWindow)
            windows = self.merging.setdefault(key, MergingWindows(assigner))
            windows.load(window, TimeWindow(*state))

    def _load_timers(self, kind: str, panes: list[Pane], entries: pa.Table) -> None:
        queue: TimerQueue[Pane] = getattr(self, kind)
        names = (TIMES[kind], "number", "silent")
        times, numbers, silent = (entries.column(name).to_pylist() for name in names)
        for timer in map(Timer, times, panes, numbers, silent):
            queue.load(timer)

    def _load_state(self, kind: str, panes: list[Pane], entries: pa.Table) -> None:
        state: StateTable = getattr(self, kind)
        stored = {state_column(kind, name): name for name in state.fields}
        rows = entries.select(list(stored)).rename_columns(list(stored.values())).to_pylist()
        for pane, row in zip(panes, rows, strict=True):
            state.load(pane.key if kind == "key_state" else pane, row)


def _of_key(key: Key) -> Pane:
    return Pane(key, GlobalWindow())


def _windows(entries: pa.Table, bounds: tuple[str, str]) -> Iterator[Window]:
    """Yield the windows whose bounds are in two columns."""
    columns = (entries.column(name).to_pylist() for name in bounds)
    for start, end in zip(*columns, strict=True):
        yield GlobalWindow() if start is None else TimeWindow(start, end)
