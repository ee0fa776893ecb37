"""What the state machines of both back ends share: their memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from gpu_windows.rules.window_operator.layout import Events, Panes, Sessions, Units

Ints = NDArray[np.int64]
T = TypeVar("T")

#: Types of the arrays of `Events` after the cursors.
EVENT_TYPES = (*(np.int64,) * 7, np.int8, np.int64)


@dataclass(frozen=True)
class Run:
    """What a machine did.

    Parameters
    ----------
    panes : Panes
        As they are now.
    events : Events
        By unit (pane or key), those of a unit in their order.
    late : int8[r]
        Which rows are in no session, for they came too late; empty for other windows.
    """

    panes: Panes
    events: Events
    late: NDArray[np.int8]


def counting(units: int) -> Events:
    """Return events that are only counted."""
    return _events(np.zeros(2 * units, np.int64), 0, 0)


def allocate(counts: Ints) -> Events:
    """Return the memory of as many events and elements as were counted for every unit."""
    both = counts.reshape(-1, 2)
    ends = np.cumsum(both, axis=0)
    total, taken = (int(n) for n in ends[-1]) if len(both) else (0, 0)
    return _events(np.ascontiguousarray((ends - both).reshape(-1)), total, taken)


def run_in_guessed_memory(
    panes: Panes, elements: int, run: Callable[[Panes, Events], T]
) -> tuple[Panes, Events, T]:
    """Run a machine whose units run one after the other, as if they were one.

    Memory that is not touched costs nothing, so there is room for most; where it is too little the
    machine runs again. ``run`` changes the panes that it is given, and may return something.
    """
    total, taken = 4 * len(panes.last) + elements, 2 * elements
    while True:
        after, events = copied(panes), _events(np.zeros(2, np.int64), total, taken)
        found = run(after, events)
        used, most = total, taken
        total, taken = (int(n) for n in events.cursors)
        if total <= used and taken <= most:
            break
    parts = (part[:total] for part in events[1:-1])
    return after, Events._make([events.cursors, *parts, events.taken[:taken]]), found


def _events(cursors: Ints, total: int, taken: int) -> Events:
    arrays = [np.empty(total, dtype) for dtype in EVENT_TYPES]
    return Events._make([cursors, *arrays, np.empty(taken, np.int64)])


def copied(panes: Panes) -> Panes:
    """Return panes that a machine may change."""
    return Panes(*(part.copy() for part in panes))


def no_sessions(
    units: Units, panes: Panes, opens: NDArray[np.int64], closes: NDArray[np.int64]
) -> Sessions:
    """Return sessions that are not linked yet."""
    before, after = np.full((2, len(panes.last)), -1, np.int64)
    finger, free = np.full((2, len(units.known)), -1, np.int64)
    return Sessions(opens, closes, np.zeros(len(opens), np.int8), before, after, finger, free)
