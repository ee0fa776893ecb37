"""Contents of panes: appending rows, evicting them, and emitting them when a trigger fires."""

from __future__ import annotations

from gpu_windows.rules import LONG_MIN
from gpu_windows.rules.window_operator.layout import (
    BY_COUNT,
    BY_DELTA,
    BY_TIME,
    FIRE,
    NO_EVICTOR,
    PURGE,
    Elements,
    Events,
    Panes,
    Settings,
)
from gpu_windows.rules.window_operator.triggers import distance_of


def forget(panes: Panes, pane: int) -> None:
    """Empty the list of a pane."""
    panes.head[pane] = -1
    panes.tail[pane] = -1
    panes.list_length[pane] = 0


def append(panes: Panes, pane: int, elements: Elements, element: int) -> None:
    """Add an element to a pane's list."""
    elements.following[element] = -1
    if panes.list_length[pane] == 0:
        panes.head[pane] = element
    else:
        elements.following[panes.tail[pane]] = element
    panes.tail[pane] = element
    panes.list_length[pane] += 1


def evict(panes: Panes, pane: int, elements: Elements, settings: Settings) -> None:
    """Drop what an evictor does not keep from a pane's list."""
    if settings.evictor == BY_COUNT:
        for _ in range(panes.list_length[pane] - settings.limit):
            panes.head[pane] = elements.following[panes.head[pane]]
            panes.list_length[pane] -= 1
    elif panes.list_length[pane] > 0:
        newest, element = LONG_MIN, panes.head[pane]
        untimed = elements.ts[elements.rows[element]] == LONG_MIN
        for _ in range(panes.list_length[pane]):
            newest = max(newest, elements.ts[elements.rows[element]])
            element = elements.following[element]
        everything = settings.evictor == BY_TIME and (untimed or newest < LONG_MIN + settings.limit)
        bound = LONG_MIN if everything else newest - settings.limit
        last = 0.0
        if settings.evictor == BY_DELTA:
            row = elements.rows[panes.tail[pane]]
            last = elements.lanes[settings.limit * elements.ts.size + row]
        element, count = panes.head[pane], panes.list_length[pane]
        forget(panes, pane)
        for _ in range(count):
            following = elements.following[element]
            row = elements.rows[element]
            if settings.evictor == BY_TIME:
                stays = everything or elements.ts[row] > bound
            else:
                value = elements.lanes[settings.limit * elements.ts.size + row]
                stays = not distance_of(settings.distance, value, last) >= settings.threshold
            if stays:
                append(panes, pane, elements, element)
            element = following
    if panes.list_length[pane] == 0:
        forget(panes, pane)


def emit(
    cause: int, time: int, element: int, pane: int,
    panes: Panes, elements: Elements, events: Events,
) -> None:  # fmt: skip
    """Record an event with the elements of the pane's list.

    Events that do not fit are only counted, so that the caller can allocate more and run again.
    """
    at, place = events.cursors[0], events.cursors[1]
    if at < events.pane.size and place + panes.list_length[pane] <= events.elements.size:
        events.pane[at] = pane
        events.start[at] = panes.start[pane]
        events.last[at] = panes.last[pane]
        events.fired[at] = panes.fired[pane]
        events.cause[at] = cause
        events.time[at] = time
        events.element[at] = element
        events.fresh[at] = panes.row_count[pane] == panes.list_length[pane]
        events.begin[at] = place
        link = panes.head[pane]
        for i in range(panes.list_length[pane]):
            events.elements[place + i] = link
            link = elements.following[link]
    events.cursors[0] = at + 1
    events.cursors[1] = place + panes.list_length[pane]


def follow(
    result: int, cause: int, time: int, element: int, pane: int,
    settings: Settings, panes: Panes, elements: Elements, events: Events,
) -> None:  # fmt: skip
    """Do what the trigger said; a window without contents emits nothing."""
    if (result & FIRE) != 0 and panes.row_count[pane] > 0:
        for after in range(2):
            if settings.evictor != NO_EVICTOR and settings.after == after:
                evict(panes, pane, elements, settings)
            if after == 0:
                emit(cause, time, element, pane, panes, elements, events)
        panes.fired[pane] += 1
        if not settings.takes_all:
            forget(panes, pane)
        elif settings.evictor != NO_EVICTOR:
            panes.row_count[pane] = panes.list_length[pane]
    if (result & PURGE) != 0:
        forget(panes, pane)
        panes.row_count[pane] = 0
