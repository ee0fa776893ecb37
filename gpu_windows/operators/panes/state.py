"""State of the buffer strategy: the windows of some keys and their contents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from gpu_windows.operators.columns.partials import PartialColumn, State
from gpu_windows.operators.columns.ranges import concat_fields, offsets, ranges
from gpu_windows.rules import LONG_MAX
from gpu_windows.rules.window_operator.layout import (
    CLEANUP,
    END,
    KIND,
    PROCESSING_END,
    REST,
    SET,
    SILENT,
    TIMED,
    Events,
    Panes,
    Program,
    Settings,
)
from gpu_windows.rules.window_operator.triggers import is_in_processing_time

Ints = NDArray[np.int64]

#: Fields of `Panes` with a value for each node of the program.
WIDE = frozenset({"values", "references", "marks"})


@dataclass(frozen=True)
class EmittedWindows:
    """Windows with a row in the result table, by the live session that contains them.

    Parameters
    ----------
    begins : int64[s + 1]
        Where the windows of every session begin.
    start, last : int64[e]
        Their first and last ticks.
    """

    begins: Ints
    start: Ints
    last: Ints

    @classmethod
    def nothing(cls, sessions: int) -> Self:
        """Return no windows, for sessions that have not fired."""
        none = np.empty(0, np.int64)
        return cls(np.zeros(sessions + 1, np.int64), none, none)

    def take(self, index: Ints) -> Self:
        """Return the windows of some sessions."""
        lengths = np.diff(self.begins)[index]
        at = ranges(self.begins[index], lengths)
        return type(self)(offsets(lengths), self.start[at], self.last[at])

    @classmethod
    def concat(cls, parts: Sequence[Self]) -> Self:
        """Concatenate the windows of sessions."""
        lengths = np.concatenate([np.diff(part.begins) for part in parts])
        return cls(offsets(lengths), *concat_fields(parts, "start", "last"))


@dataclass(frozen=True)
class PaneState:
    """Windows of keys, sorted by (code, number).

    Parameters
    ----------
    codes, numbers : int64[s]
        Key code and number of every window; of sessions the first tick.
    panes : Panes
        State of the trigger; its lists are only valid during a call.
    begins : int64[s + 1]
        Where the rows of every window begin in ``rows``.
    rows : int64[p]
        The retained rows of every window, in order of arrival.
    partials : tuple of State
        The partials of every window, of rows that no list has.
    emitted : EmittedWindows, optional
        The windows whose result rows a session replaces when it fires, if it emits changes.
    """

    codes: Ints
    numbers: Ints
    panes: Panes
    begins: Ints
    rows: Ints
    partials: tuple[State, ...]
    emitted: EmittedWindows | None = None

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def lengths(self) -> Ints:
        """Number of retained rows of every window: int64[s]."""
        return np.diff(self.begins)

    @property
    def nodes(self) -> int:
        """Number of nodes of the program."""
        return len(self.panes.values) // max(len(self), 1)

    def size(self) -> dict[str, int]:
        """Return the number of entries of each kind."""
        panes = self.panes
        return {
            "windows": len(self),
            "timers": int(np.count_nonzero(panes.timers)),
            "trigger_state": int(np.count_nonzero(panes.marks & SET)),
        }

    def take(self, index: Ints, columns: Sequence[PartialColumn]) -> Self:
        """Return some windows."""
        lengths = self.lengths[index]
        pairs = zip(columns, self.partials, strict=True)
        return type(self)(
            self.codes[index],
            self.numbers[index],
            take_panes(self.panes, index, self.nodes),
            offsets(lengths),
            self.rows[ranges(self.begins[index], lengths)],
            tuple(column.take(state, index) for column, state in pairs),
            None if self.emitted is None else self.emitted.take(index),
        )

    def sort(self, columns: Sequence[PartialColumn]) -> Self:
        """Return the windows by (code, number)."""
        return self.take(np.lexsort((self.numbers, self.codes)), columns)

    @classmethod
    def concat(cls, parts: Sequence[Self], columns: Sequence[PartialColumn]) -> Self:
        """Concatenate windows."""
        names = ("codes", "numbers", "lengths", "rows")
        codes, numbers, lengths, rows = concat_fields(parts, *names)
        states = zip(*(part.partials for part in parts), strict=True)
        return cls(
            codes,
            numbers,
            Panes(*concat_fields([part.panes for part in parts], *Panes._fields)),
            offsets(lengths),
            rows,
            tuple(c.concat(list(each)) for c, each in zip(columns, states, strict=True)),
            _concat_emitted(parts),
        )

    @classmethod
    def create(
        cls, codes: Ints, numbers: Ints, start: Ints, last: Ints,
        columns: Sequence[PartialColumn], nodes: int,
    ) -> Self:  # fmt: skip
        """Return windows without contents."""
        count = len(codes)
        nothing = np.zeros(count, np.int64)
        states = tuple(c.take(c.nothing(), nothing) for c in columns)
        return cls(
            codes,
            numbers,
            create_panes(start, last, nodes),
            offsets(nothing),
            np.empty(0, np.int64),
            states,
        )


def _concat_emitted(parts: Sequence[PaneState]) -> EmittedWindows | None:
    """Concatenate the emitted windows; None if no part has them."""
    if all(part.emitted is None for part in parts):
        return None
    return EmittedWindows.concat(
        [part.emitted or EmittedWindows.nothing(len(part)) for part in parts]
    )


def create_panes(start: Ints, last: Ints, nodes: int) -> Panes:
    """Return panes without contents; the machine sets when they are dropped."""
    count = len(start)

    def zeros(each: int = 1, dtype: type[np.generic] = np.int64) -> NDArray[Any]:
        return np.zeros(count * each, dtype)

    return Panes(
        start=start,
        last=last,
        cleanup=zeros(),
        values=zeros(nodes),
        references=zeros(nodes, np.float64),
        marks=zeros(nodes, np.int8),
        timers=zeros(1, np.int8),
        fired=zeros(),
        row_count=zeros(),
        head=zeros() - 1,
        tail=zeros() - 1,
        list_length=zeros(),
        alive=np.ones(count, np.int8),
    )


def take_panes(panes: Panes, index: Ints, nodes: int) -> Panes:
    """Return some panes; ``nodes`` is the number of nodes of their program."""
    of_nodes = (index[:, None] * nodes + np.arange(nodes)).reshape(-1)
    return Panes(
        *(
            part[of_nodes if name in WIDE else index]
            for name, part in zip(Panes._fields, panes, strict=True)
        )
    )


def timers(
    program: Program, panes: Panes, settings: Settings, *, in_processing_time: bool
) -> tuple[NDArray[np.bool_], Ints]:
    """Return which panes have a timer of processing time, or of event time, and the earliest."""
    nodes = len(program.thresholds)
    found = (panes.timers & (PROCESSING_END if in_processing_time else END)) != 0
    time = np.where(found, panes.last, LONG_MAX)
    others = []
    if in_processing_time != bool(settings.is_event_time):
        others.append(((panes.timers & (CLEANUP | SILENT)) != 0, panes.cleanup))
    values, marks = panes.values.reshape(-1, nodes), panes.marks.reshape(-1, nodes)
    for node, kind in enumerate(program.nodes.reshape(nodes, -1)[:, KIND].tolist()):
        if bool(is_in_processing_time(kind)) == in_processing_time:
            others.append(((marks[:, node] & TIMED) != 0, values[:, node]))
    for waits, at in others:
        found |= waits
        time = np.where(waits, np.minimum(time, at), time)
    return found, time


def keep_lists(
    before: PaneState, after: Panes, events: Events, rows: Ints, lengths: Ints
) -> PaneState:
    """Return the panes that are still alive, with their remaining rows."""
    rest = events.cause == REST
    of_pane = np.zeros(len(before), np.int64)
    of_pane[events.pane[rest]] = lengths[rest]
    whole = PaneState(
        before.codes, before.numbers, after, offsets(of_pane), rows[np.repeat(rest, lengths)], ()
    )
    return whole.take(np.flatnonzero(after.alive), ())
