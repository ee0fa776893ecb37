"""State of the row-at-a-time operator in memory, and its conversion to entries and back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from gpu_windows.functions.process import Process
from gpu_windows.operators.keyed.backend import Key, KeyedBackend, select
from gpu_windows.operators.keyed.state import StateTable
from gpu_windows.operators.keyed.timers import Pane, Timer, TimerQueue
from gpu_windows.operators.row_at_a_time.changes import EmittedWindows
from gpu_windows.operators.row_at_a_time.contents import ContentsFormat
from gpu_windows.operators.row_at_a_time.functions import Contents
from gpu_windows.operators.row_at_a_time.merging import MergingWindows
from gpu_windows.operators.state.keyed_table import TIMERS
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.vocabulary.windows import GlobalWindow, MergingWindowAssigner, TimeWindow, Window

#: Kinds of entries. State stores their index, so new ones go to the end.
KINDS = (
    "contents", "firings", "merging", "event_timers", "processing_timers",
    "trigger_state", "window_state", "key_state", "emitted",
)  # fmt: skip
#: Kinds that are timers, and the column of their times.
_TIMES = {"event_timers": TIMERS[0], "processing_timers": TIMERS[1]}
#: Kinds that are declared state.
_STATES = ("trigger_state", "window_state", "key_state")
#: Names of the counts of some kinds; those of others are their own.
_COUNTED = {"contents": "windows", "merging": "merging_windows"}
#: Column of the rows in a window.
_ROWS = "rows"
#: Columns of the bounds of windows: of their own, of state windows, and of windows that have a row
#: in the result table of a changelog.
_BOUNDS, _MERGING = ("start", "end"), ("state_start", "state_end")
_EMITTED = ("emitted_start", "emitted_end")

#: Panes, and the other columns of their entries.
PaneEntries = tuple[Sequence[Pane], Mapping[str, Sequence[Any]]]


class WindowState(KeyedBackend):
    """The state of a `gpu_windows.operators.row_at_a_time.operator.ReferenceOperator`.

    Attributes
    ----------
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

    _query: WindowQuery
    event_timers: TimerQueue[Pane]
    processing_timers: TimerQueue[Pane]

    def __init__(self, query: WindowQuery) -> None:
        super().__init__(query, [_COUNTED.get(kind, kind) for kind in KINDS])
        function = query.function
        user_function = function.function if isinstance(function, Process) else None
        name = type(user_function).__name__
        self.event_timers, self.processing_timers = TimerQueue(), TimerQueue()
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
        """Return the entries of all keys: of a key, and usually of one of its windows."""
        found = enumerate(self._collect_entries())
        return self._concat(self._pane_entries(kind, *of) for kind, of in found if of[0])

    def counts(self, entries: pa.Table) -> Counter[str]:
        """Return the number of entries of each kind, and of the rows in windows."""
        counts = super().counts(entries)
        if _ROWS in entries.column_names:
            lengths = pc.list_value_length(entries.column(_ROWS))
            counts[_ROWS] = pc.sum(lengths, min_count=0).as_py()
        return counts

    def restore(self, entries: pa.Table) -> None:
        """Load entries of keys that have none in memory."""
        loads: dict[str, Callable[[list[Pane], pa.Table], None]] = {
            "contents": self._load_contents,
            "firings": self._load_firings,
            "merging": self._load_merging,
            **{kind: partial(self._load_timers, kind) for kind in _TIMES},
            **{kind: partial(self._load_state, kind) for kind in _STATES},
            "emitted": self._load_emitted,
        }
        for number, kind in enumerate(KINDS):
            some = select(entries, number)
            if len(some):  # state of a key has no window, so it gets any
                panes = [*map(Pane, self._keys_of(some), _windows(some, _BOUNDS))]
                loads[kind](panes, some)

    @property
    def _states(self) -> dict[str, StateTable]:
        return {name: getattr(self, name) for name in _STATES}

    @cached_property
    def _format(self) -> ContentsFormat:
        return ContentsFormat(self._query)

    @property
    def _columns(self) -> Mapping[str, pa.DataType]:
        merging = _MERGING if self._query.merges else ()
        emitted = _EMITTED if self._query.changes else ()
        longs = (*_BOUNDS, "count", "number", *merging, *emitted)
        return {
            **dict.fromkeys(longs, pa.int64()),
            "silent": pa.bool_(),
            **self._format.fields,
            **{
                f"{kind} {name}": dtype
                for kind, state in self._states.items()
                for name, dtype in state.fields.items()
            },
        }

    def _pane_entries(
        self, kind: int, panes: Sequence[Pane], columns: Mapping[str, Sequence[Any]]
    ) -> pa.Table:
        """Return the entries of a kind."""
        bounds = _bounds_of(_BOUNDS, [p.window for p in panes])
        return self._table_of(kind, KINDS[kind], [p.key for p in panes], {**bounds, **columns})

    # ---- kinds of entries

    def _collect_entries(self) -> Iterator[PaneEntries]:
        """Yield the entries of each kind."""
        fields, entry = self._format.fields, self._format.entry
        contents = [entry(each) for each in self.contents.values()]
        yield [*self.contents], {name: [each[name] for each in contents] for name in fields}
        yield [*self.firings], {"count": [*self.firings.values()]}
        yield self._merging_entries()
        for kind, at in _TIMES.items():
            timers = [*getattr(self, kind)]
            columns = {name: [getattr(t, name) for t in timers] for name in ("number", "silent")}
            yield [t.pane for t in timers], {at: [t.time for t in timers], **columns}
        for kind, state in self._states.items():
            entries = [state.entry(where) for where in state]
            yield (
                [w if isinstance(w, Pane) else Pane(w, GlobalWindow()) for w in state],
                {f"{kind} {name}": [e[name] for e in entries] for name in state.fields},
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
        return panes, _bounds_of(_MERGING, states) if self._query.merges else {}

    def _emitted_entries(self) -> PaneEntries:
        pairs = [*self.emitted]
        columns = _bounds_of(_EMITTED, [window for _, window in pairs])
        return [pane for pane, _ in pairs], columns if self._query.changes else {}

    def _load_emitted(self, panes: list[Pane], entries: pa.Table) -> None:
        for pane, window in zip(panes, _windows(entries, _EMITTED), strict=True):
            self.emitted.load(pane, window)

    def _load_contents(self, panes: list[Pane], entries: pa.Table) -> None:
        rows = entries.select(list(self._format.fields)).to_pylist()
        for pane, row in zip(panes, rows, strict=True):
            self.contents[pane] = self._format.contents(row)

    def _load_firings(self, panes: list[Pane], entries: pa.Table) -> None:
        self.firings.update(dict(zip(panes, entries.column("count").to_pylist(), strict=True)))

    def _load_merging(self, panes: list[Pane], entries: pa.Table) -> None:
        assigner = self._query.assigner
        assert isinstance(assigner, MergingWindowAssigner)
        for (key, window), state in zip(panes, _windows(entries, _MERGING), strict=True):
            assert isinstance(window, TimeWindow)
            assert isinstance(state, TimeWindow)
            self.merging.setdefault(key, MergingWindows(assigner)).load(window, state)

    def _load_timers(self, kind: str, panes: list[Pane], entries: pa.Table) -> None:
        queue: TimerQueue[Pane] = getattr(self, kind)
        names = (_TIMES[kind], "number", "silent")
        times, numbers, silent = (entries.column(name).to_pylist() for name in names)
        for timer in map(Timer, times, panes, numbers, silent):
            queue.load(timer)

    def _load_state(self, kind: str, panes: list[Pane], entries: pa.Table) -> None:
        state: StateTable = getattr(self, kind)
        stored = {f"{kind} {name}": name for name in state.fields}
        rows = entries.select(list(stored)).rename_columns(list(stored.values())).to_pylist()
        for pane, row in zip(panes, rows, strict=True):
            state.load(pane.key if kind == "key_state" else pane, row)


def _bounds_of(names: tuple[str, str], windows: Sequence[Window]) -> dict[str, list[int | None]]:
    """Return the bounds of windows, by the names of their columns."""
    start, end = names
    return {start: [w.start for w in windows], end: [w.end for w in windows]}


def _windows(entries: pa.Table, bounds: tuple[str, str]) -> Iterator[Window]:
    """Yield the windows whose bounds are in two columns."""
    columns = (entries.column(name).to_pylist() for name in bounds)
    for start, end in zip(*columns, strict=True):
        yield GlobalWindow() if start is None else TimeWindow(start, end)
