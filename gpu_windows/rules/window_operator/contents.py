"""What a slot holds of its rows, what an evictor leaves of it, and what a firing takes."""

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
    Settings,
    Slots,
)
from gpu_windows.rules.window_operator.triggers import distance_of


def forget(slots: Slots, slot: int) -> None:
    """Empty the list of a slot."""
    slots.head[slot] = -1
    slots.tail[slot] = -1
    slots.listed[slot] = 0


def append(slots: Slots, slot: int, elements: Elements, element: int) -> None:
    """Add an element to a slot's list."""
    elements.following[element] = -1
    if slots.listed[slot] == 0:
        slots.head[slot] = element
    else:
        elements.following[slots.tail[slot]] = element
    slots.tail[slot] = element
    slots.listed[slot] += 1


def evict(slots: Slots, slot: int, elements: Elements, settings: Settings) -> None:
    """Drop what an evictor does not keep from a slot's list."""
    if settings.evictor == BY_COUNT:
        for _ in range(slots.listed[slot] - settings.limit):
            slots.head[slot] = elements.following[slots.head[slot]]
            slots.listed[slot] -= 1
    elif slots.listed[slot] > 0:
        newest, element = LONG_MIN, slots.head[slot]
        untimed = elements.ts[elements.rows[element]] == LONG_MIN
        for _ in range(slots.listed[slot]):
            newest = max(newest, elements.ts[elements.rows[element]])
            element = elements.following[element]
        everything = settings.evictor == BY_TIME and (untimed or newest < LONG_MIN + settings.limit)
        bound = LONG_MIN if everything else newest - settings.limit
        last = 0.0
        if settings.evictor == BY_DELTA:
            row = elements.rows[slots.tail[slot]]
            last = elements.lanes[settings.limit * elements.ts.size + row]
        element, count = slots.head[slot], slots.listed[slot]
        forget(slots, slot)
        for _ in range(count):
            following = elements.following[element]
            row = elements.rows[element]
            if settings.evictor == BY_TIME:
                kept = everything or elements.ts[row] > bound
            else:
                value = elements.lanes[settings.limit * elements.ts.size + row]
                kept = not distance_of(settings.distance, value, last) >= settings.threshold
            if kept:
                append(slots, slot, elements, element)
            element = following
    if slots.listed[slot] == 0:
        forget(slots, slot)


def emit(
    cause: int, time: int, element: int, slot: int, cursor: int, fill: int,
    slots: Slots, elements: Elements, events: Events,
) -> None:  # fmt: skip
    """Record an event with the elements of the slot's list; without ``fill`` only count.

    What does not fit is counted too, so that the caller can make room and run again.
    """
    at, place = events.cursors[2 * cursor], events.cursors[2 * cursor + 1]
    if fill and at < events.slot.size and place + slots.listed[slot] <= events.taken.size:
        events.slot[at] = slot
        events.start[at] = slots.start[slot]
        events.last[at] = slots.last[slot]
        events.fired[at] = slots.fired[slot]
        events.cause[at] = cause
        events.time[at] = time
        events.element[at] = element
        events.fresh[at] = slots.held[slot] == slots.listed[slot]
        events.begin[at] = place
        taken = slots.head[slot]
        for i in range(slots.listed[slot]):
            events.taken[place + i] = taken
            taken = elements.following[taken]
    events.cursors[2 * cursor] = at + 1
    events.cursors[2 * cursor + 1] = place + slots.listed[slot]


def follow(
    result: int, cause: int, time: int, element: int, slot: int, cursor: int, fill: int,
    settings: Settings, slots: Slots, elements: Elements, events: Events,
) -> None:  # fmt: skip
    """Do what the trigger said; a window without contents emits nothing."""
    if (result & FIRE) != 0 and slots.held[slot] > 0:
        for after in range(2):
            if settings.evictor != NO_EVICTOR and settings.after == after:
                evict(slots, slot, elements, settings)
            if after == 0:
                emit(cause, time, element, slot, cursor, fill, slots, elements, events)
        slots.fired[slot] += 1
        if settings.keeps_rows:
            slots.held[slot] = slots.listed[slot]
        else:
            forget(slots, slot)
    if (result & PURGE) != 0:
        forget(slots, slot)
        slots.held[slot] = 0


#: The functions that kernels compile, each after those that it calls.
COMPILED = (forget, append, evict, emit, follow)
