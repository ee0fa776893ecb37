"""What the state machines of both back ends share: their memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpu_windows.machine.state import Events, Sessions, Slots, Units

Ints = NDArray[np.int64]

#: Types of the arrays of `Events` after the cursors.
EVENT_TYPES = (*(np.int64,) * 7, np.int8, np.int64)


@dataclass(frozen=True)
class Run:
    """What a machine did.

    Parameters
    ----------
    slots : Slots
        As they are now.
    events : Events
        By unit (slot or key), those of a unit in their order.
    late : int8[r]
        Which rows are in no session, for they came too late; empty for other windows.
    """

    slots: Slots
    events: Events
    late: NDArray[np.int8]


def counting(units: int) -> Events:
    """Return events that are only counted."""
    nothing = [np.empty(0, kind) for kind in EVENT_TYPES]
    return Events._make([np.zeros(2 * units, np.int64), *nothing, np.empty(0, np.int64)])


def allocate(counts: Ints) -> Events:
    """Return the memory of as many events and elements as were counted for every unit."""
    both = counts.reshape(-1, 2)
    ends = np.cumsum(both, axis=0)
    total, taken = (int(n) for n in ends[-1]) if len(both) else (0, 0)
    cursors = np.ascontiguousarray((ends - both).reshape(-1))
    arrays = [np.empty(total, kind) for kind in EVENT_TYPES]
    return Events._make([cursors, *arrays, np.empty(taken, np.int64)])


def copied(slots: Slots) -> Slots:
    """Return slots that a machine may change."""
    return Slots(*(part.copy() for part in slots))


def no_sessions(
    units: Units, slots: Slots, opens: NDArray[np.int64], closes: NDArray[np.int64]
) -> Sessions:
    """Return sessions that are not linked yet."""
    before, after = np.full((2, len(slots.last)), -1, np.int64)
    finger, free = np.full((2, len(units.known)), -1, np.int64)
    return Sessions(opens, closes, np.zeros(len(opens), np.int8), before, after, finger, free)
