"""What happens to a slot: rows come, timers fire, the window is dropped.

Source: org.apache.flink.streaming.runtime.operators.windowing.WindowOperator and
EvictingWindowOperator.
"""

from __future__ import annotations

from gpu_windows.rules import LONG_MAX, cleanup_time
from gpu_windows.rules.window_operator.contents import append, emit, follow, forget
from gpu_windows.rules.window_operator.layout import (
    CLEANUP,
    CLOCK_TIMER,
    ELEMENT,
    EVENT_TIMER,
    REST,
    Elements,
    Events,
    Program,
    Settings,
    Slots,
)
from gpu_windows.rules.window_operator.triggers import ask, clear_nodes, drop_timer, next_due


def drop_slot(slot: int, program: Program, settings: Settings, slots: Slots) -> None:
    """Drop a window and all that belongs to it."""
    clear_nodes(0, program.thresholds.size, program, settings, slots, slot)
    slots.timers[slot] = 0
    slots.held[slot] = 0
    slots.alive[slot] = 0
    forget(slots, slot)


def run_slot(
    slot: int, cursor: int, fill: int, element: int, end: int, advance: int, program: Program,
    settings: Settings, slots: Slots, elements: Elements, events: Events,
) -> None:  # fmt: skip
    """Put elements [element, end) into a window, then fire its timers that are due by ``advance``.

    One loop for both, so that a kernel holds what is asked and done but once.
    """
    while True:
        how, time, row, by, silent = ELEMENT, 0, 0, element, False
        if element < end:
            row = elements.rows[element]
            time = elements.ts[row]
            append(slots, slot, elements, element)
            slots.held[slot] += 1
            element += 1
        else:
            how, by, found = advance, -1, False
            of_clock = 1 if advance == CLOCK_TIMER else 0
            if advance != ELEMENT:
                found, time, silent = next_due(
                    of_clock, settings.until, program, settings, slots, slot
                )
            if not found:
                break
            drop_timer(of_clock, time, program, settings, slots, slot)
        if not silent:
            result = ask(how, time, row, elements, program, settings, slots, slot)
            follow(result, how, time, by, slot, cursor, fill, settings, slots, elements, events)
        if how == ELEMENT:
            if slots.cleanup[slot] < LONG_MAX:
                slots.timers[slot] |= CLEANUP
        elif time == slots.cleanup[slot] and (how == EVENT_TIMER) == (settings.is_event_time != 0):
            drop_slot(slot, program, settings, slots)


def begin_slot(
    slot: int, begin: int, end: int, settings: Settings, slots: Slots, elements: Elements
) -> None:
    """Make elements [begin, end), which the slot held before the call, its list."""
    slots.cleanup[slot] = cleanup_time(slots.last[slot], settings.lateness)
    for element in range(begin, end):
        elements.following[element] = element + 1
    slots.head[slot] = begin
    slots.tail[slot] = end - 1
    slots.listed[slot] = end - begin
    if end == begin:
        forget(slots, slot)


def hand_over(
    slot: int, cursor: int, fill: int,
    settings: Settings, slots: Slots, elements: Elements, events: Events,
) -> None:  # fmt: skip
    """Hand the elements over that no firing took."""
    if not settings.is_end and slots.alive[slot] and slots.listed[slot] > 0:
        emit(REST, 0, -1, slot, cursor, fill, slots, elements, events)


#: The functions that kernels compile, each after those that it calls.
COMPILED = (drop_slot, run_slot, begin_slot, hand_over)
