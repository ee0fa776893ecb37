"""Events of a pane: rows arrive, timers fire, the window is dropped.

Source: org.apache.flink.streaming.runtime.operators.windowing.WindowOperator and
EvictingWindowOperator.
"""

from __future__ import annotations

from gpu_windows.rules import LONG_MAX, cleanup_time
from gpu_windows.rules.window_operator.contents import append, emit, follow, forget
from gpu_windows.rules.window_operator.layout import (
    CLEANUP,
    ELEMENT,
    EVENT_TIMER,
    PROCESSING_TIMER,
    REST,
    Elements,
    Events,
    Panes,
    Program,
    Settings,
)
from gpu_windows.rules.window_operator.triggers import ask, clear_nodes, drop_timer, next_due


def drop_pane(pane: int, program: Program, settings: Settings, panes: Panes) -> None:
    """Drop a window and all that belongs to it."""
    clear_nodes(0, program.thresholds.size, program, settings, panes, pane)
    panes.timers[pane] = 0
    panes.row_count[pane] = 0
    panes.alive[pane] = 0
    forget(panes, pane)


def run_pane(
    pane: int, element: int, end: int, advance: int, program: Program, settings: Settings,
    panes: Panes, elements: Elements, events: Events,
) -> None:  # fmt: skip
    """Put elements [element, end) into a window, then fire its timers that are due by ``advance``.

    Both are one loop: kernels inline every call, so a second loop would hold all the code again
    that asks the trigger and does what it says.
    """
    while True:
        how, time, row, by, silent = ELEMENT, 0, 0, element, False
        if element < end:
            row = elements.rows[element]
            time = elements.ts[row]
            append(panes, pane, elements, element)
            panes.row_count[pane] += 1
            element += 1
        else:
            how, by, found = advance, -1, False
            in_processing_time = 1 if advance == PROCESSING_TIMER else 0
            if advance != ELEMENT:
                found, time, silent = next_due(
                    in_processing_time, settings.until, program, settings, panes, pane
                )
            if not found:
                break
            drop_timer(in_processing_time, time, program, settings, panes, pane)
        if not silent:
            result = ask(how, time, row, elements, program, settings, panes, pane)
            follow(result, how, time, by, pane, settings, panes, elements, events)
        if how == ELEMENT:
            if panes.cleanup[pane] < LONG_MAX:
                panes.timers[pane] |= CLEANUP
        elif time == panes.cleanup[pane] and (how == EVENT_TIMER) == (settings.is_event_time != 0):
            drop_pane(pane, program, settings, panes)


def begin_pane(
    pane: int, begin: int, end: int, settings: Settings, panes: Panes, elements: Elements
) -> None:
    """Make elements [begin, end), which the pane held before the call, its list."""
    panes.cleanup[pane] = cleanup_time(panes.last[pane], settings.lateness)
    for element in range(begin, end):
        elements.following[element] = element + 1
    panes.head[pane] = begin
    panes.tail[pane] = end - 1
    panes.list_length[pane] = end - begin
    if end == begin:
        forget(panes, pane)


def hand_over(
    pane: int, settings: Settings, panes: Panes, elements: Elements, events: Events
) -> None:
    """Hand the elements over that no firing took."""
    if not settings.is_end and panes.alive[pane] and panes.list_length[pane] > 0:
        emit(REST, 0, -1, pane, panes, elements, events)
