"""Changelog of session results: which sessions have a row in the result table, for many keys.

The live sessions of a key never overlap, and a session that grows or merges covers its former
windows: so a firing replaces the rows that it covers, and no others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.functions.top_changes import Change, change_names
from gpu_windows.operators.columns.ranges import concat_fields, offsets
from gpu_windows.operators.panes.state import EmittedWindows, PaneState
from gpu_windows.rules.window_operator.layout import REST, Events

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Windows:
    """Windows of keys: key codes, first and last ticks, int64[n] each."""

    codes: Ints
    start: Ints
    last: Ints

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, index: Ints) -> Windows:
        """Return some of them."""
        return Windows(self.codes[index], self.start[index], self.last[index])

    def concat(self, other: Windows) -> Windows:
        """Return these, then others."""
        return Windows(*concat_fields((self, other), "codes", "start", "last"))


@dataclass(frozen=True)
class Changes:
    """Changes of the result table by firings.

    Parameters
    ----------
    replaces : bool[f]
        Whether a firing replaces the row of its own window.
    gone : Windows
        Windows whose rows are deleted, by firing, then by time.
    by : int64[g]
        The firing that deletes each.
    left : Windows
        Windows with a row in the table after all firings.
    """

    replaces: NDArray[np.bool_]
    gone: Windows
    by: Ints
    left: Windows

    @classmethod
    def of(cls, emitted: Windows, fired: Windows) -> Changes:
        """Return the changes by firings.

        Parameters
        ----------
        emitted : Windows
            Windows with a row in the table, of sessions that are alive.
        fired : Windows
            The firings, those of a key in order.
        """
        emitted_count = len(emitted)
        windows = emitted.concat(fired)
        by = _find_replacing(windows, emitted_count)
        replaced = np.flatnonzero(by >= 0)
        same = windows.start[replaced] == fired.start[by[replaced]]
        same &= windows.last[replaced] == fired.last[by[replaced]]
        replaces = np.zeros(len(fired), np.bool_)
        replaces[by[replaced[same]]] = True
        gone = replaced[~same]
        gone = gone[np.lexsort((windows.last[gone], windows.start[gone], by[gone]))]
        left = windows.take(np.flatnonzero(by < 0))
        return cls(replaces, windows.take(gone), by[gone], left)


@dataclass(frozen=True)
class StepChanges:
    """Changes of the result table by the events of a step of a machine.

    Parameters
    ----------
    kinds : int8[e]
        The `Change` of the result of each event that is a firing.
    changes : Changes
        Changes by its firings; ``by`` are events.
    """

    kinds: NDArray[np.int8]
    changes: Changes

    @classmethod
    def of(cls, emitted: Windows, codes: Ints, events: Events) -> StepChanges:
        """Return the changes by events; ``codes``: the key code of each."""
        at = np.flatnonzero(events.cause != REST)
        changes = Changes.of(emitted, Windows(codes, events.start, events.last).take(at))
        kinds = np.full(len(codes), Change.INSERT, np.int8)
        kinds[at[changes.replaces]] = Change.UPDATE_AFTER
        return cls(kinds, replace(changes, by=at[changes.by]))

    def words(self, at: Ints) -> pa.Array:
        """Return the names of the changes of some firings."""
        return change_names(self.kinds[at])

    def find_deleted(self, at: Ints) -> tuple[Windows, Ints]:
        """Return the windows whose rows some consecutive firings delete, and the event of each."""
        by = self.changes.by
        begin, end = np.searchsorted(by, at[:1]), np.searchsorted(by, at[-1:], side="right")
        index = np.arange(*(begin.tolist() + end.tolist() or [0, 0]))
        return self.changes.gone.take(index), by[index]

    def keep(self, sessions: PaneState) -> PaneState:
        """Return the sessions that are still alive, with their emitted windows."""
        windows = Windows(sessions.codes, sessions.panes.start, sessions.panes.last)
        return replace(sessions, emitted=assign_to_sessions(self.changes.left, windows))


def repeat_codes(codes: Ints, emitted: EmittedWindows) -> Windows:
    """Return the emitted windows of sessions, with the key code of each."""
    return Windows(np.repeat(codes, np.diff(emitted.begins)), emitted.start, emitted.last)


def assign_to_sessions(windows: Windows, sessions: Windows) -> EmittedWindows:
    """Return the windows of each session; windows in no session are left out.

    ``sessions``: the sessions that are alive.
    """
    count = len(sessions)
    whole = sessions.concat(windows)
    order = np.lexsort((np.arange(len(whole)), whole.start, whole.codes))
    latest = np.maximum.accumulate(np.where(order < count, np.arange(len(whole)), -1))
    session = np.empty(len(whole), np.int64)
    session[order] = np.where(latest >= 0, order[latest], -1)
    of = session[count:]
    inside = np.flatnonzero(of >= 0)
    same = sessions.codes[of[inside]] == windows.codes[inside]
    inside = inside[same & (sessions.last[of[inside]] >= windows.last[inside])]
    inside = inside[np.lexsort((windows.start[inside], of[inside]))]
    lengths = np.bincount(of[inside], minlength=count).astype(np.int64)
    return EmittedWindows(offsets(lengths), windows.start[inside], windows.last[inside])


def _find_replacing(windows: Windows, emitted_count: int) -> Ints:
    """Return the first firing after each window that covers it, or -1.

    Windows from ``emitted_count`` on are firings, in order; those before were in the table already.
    """
    count = len(windows)
    if count == 0:
        return np.empty(0, np.int64)
    order, follows = _group_overlapping(windows)
    start, last = windows.start[order], windows.last[order]
    is_firing = order >= emitted_count
    ends = np.append(np.flatnonzero(~follows), count)  # of groups
    end = ends[np.cumsum(~follows)]
    candidate = np.arange(1, count + 1)
    searching = np.arange(count)
    while True:  # one pass more than there are firings of a group that cover none of each other
        searching = searching[candidate[searching] < end[searching]]
        to = candidate[searching]
        covers = is_firing[to] & (start[to] <= start[searching]) & (last[to] >= last[searching])
        searching = searching[~covers]
        if len(searching) == 0:
            break
        candidate[searching] += 1
    by = np.full(count, -1)
    found = np.flatnonzero(candidate < end)
    by[order[found]] = order[candidate[found]] - emitted_count
    return by


def _group_overlapping(windows: Windows) -> tuple[Ints, NDArray[np.bool_]]:
    """Return an order by key and by group of overlapping windows, and stable within a group.

    The second array is true for each window that is in the group of the one before it.
    """
    count = len(windows)
    _, ranks = np.unique(np.concatenate([windows.start, windows.last]), return_inverse=True)
    _, codes = np.unique(windows.codes, return_inverse=True)
    first, stop = (codes * (2 * count) + each for each in (ranks[:count], ranks[count:]))
    by_start = np.argsort(first, kind="stable")
    last_end = np.maximum.accumulate(stop[by_start])
    opens = np.ones(count, np.bool_)
    opens[1:] = first[by_start][1:] > last_end[:-1]
    group = np.empty(count, np.int64)
    group[by_start] = np.cumsum(opens)
    order = np.argsort(group, kind="stable")
    follows = np.zeros(count, np.bool_)
    follows[1:] = group[order][1:] == group[order][:-1]
    return order, follows
