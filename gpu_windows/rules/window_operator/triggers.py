"""Timers and triggers of a pane.

Source: org.apache.flink.streaming.api.windowing.triggers.
"""

from __future__ import annotations

from gpu_windows.rules import LONG_MIN, cleanup_time, interval_start
from gpu_windows.rules.window_operator.layout import (
    AFTER,
    CLEANUP,
    ELEMENT,
    END,
    EVENT_TIMER,
    FIRE,
    FIRST,
    KEEPER,
    KIND,
    NEW_MINUS_OLD,
    NODE,
    OLD_MINUS_NEW,
    PROCESSING_END,
    PROCESSING_TIMER,
    PURGE,
    SECOND,
    SET,
    SILENT,
    TIMED,
    Elements,
    Panes,
    Program,
    Settings,
)

#: Nodes of a program, in the names of their classes.
EVENT_TIME = 0
END_OF_STREAM = 1
PROCESSING_TIME = 2
CONTINUOUS_EVENT_TIME = 3
CONTINUOUS_PROCESSING_TIME = 4
COUNT = 5
DELTA = 6
NEVER = 7
PURGING = 8
TIMEOUT = 9
EARLY_AND_LATE = 10

#: Flags of a TIMEOUT node (its SECOND; FIRST is the timeout).
RESETS, CLEARS = 1, 2

# ---- timers: a set of times for each pane, so what waits for the same time is one timer


def is_in_processing_time(kind: int) -> int:
    """Whether a node's own timer is one of processing time."""
    return 1 if kind in (CONTINUOUS_PROCESSING_TIME, TIMEOUT) else 0


def drop_timer(
    in_processing_time: int, time: int,
    program: Program, settings: Settings, panes: Panes, pane: int,
) -> None:  # fmt: skip
    """Take the timer of a time back; a window is dropped all the same when its time comes."""
    if time == panes.last[pane]:
        panes.timers[pane] &= ~(PROCESSING_END if in_processing_time else END)
    cleans = (panes.timers[pane] & CLEANUP) != 0 and in_processing_time != settings.is_event_time
    if cleans and time == panes.cleanup[pane]:
        panes.timers[pane] = (panes.timers[pane] & ~CLEANUP) | SILENT
    count = program.thresholds.size
    for i in range(count):
        at = pane * count + i
        is_clock = is_in_processing_time(program.nodes[i * NODE + KIND]) == in_processing_time
        if is_clock and (panes.marks[at] & TIMED) != 0 and panes.values[at] == time:
            panes.marks[at] &= ~TIMED


def next_due(
    in_processing_time: int, limit: int,
    program: Program, settings: Settings, panes: Panes, pane: int,
) -> tuple[bool, int, bool]:  # fmt: skip
    """Return whether a timer up to ``limit`` waits, the earliest, and whether it is silent."""
    found, time = False, limit
    timers = panes.timers[pane]
    if (timers & (PROCESSING_END if in_processing_time else END)) != 0 and panes.last[pane] <= time:
        found, time = True, panes.last[pane]
    cleans = (timers & CLEANUP) != 0 and in_processing_time != settings.is_event_time
    if cleans and panes.cleanup[pane] <= time:
        found, time = True, panes.cleanup[pane]
    count = program.thresholds.size
    for i in range(count):
        at = pane * count + i
        is_clock = is_in_processing_time(program.nodes[i * NODE + KIND]) == in_processing_time
        if is_clock and (panes.marks[at] & TIMED) != 0 and panes.values[at] <= time:
            found, time = True, panes.values[at]
    silent = (timers & SILENT) != 0 and in_processing_time != settings.is_event_time
    if silent and (panes.cleanup[pane] < time or (not found and panes.cleanup[pane] == time)):
        return True, panes.cleanup[pane], True
    return found, time, False


# ---- triggers


def clear_nodes(
    begin: int, end: int, program: Program, settings: Settings, panes: Panes, pane: int
) -> None:
    """Forget what the nodes of a subtree keep, and their timers (Flink: Trigger.clear)."""
    count = program.thresholds.size
    for i in range(begin, end):
        kind, at = program.nodes[i * NODE + KIND], pane * count + program.nodes[i * NODE + KEEPER]
        at_end = kind in (EVENT_TIME, END_OF_STREAM, EARLY_AND_LATE, PROCESSING_TIME)
        if at_end or ((panes.marks[at] & SET) != 0 and kind != DELTA):
            in_processing_time = 1 if kind == PROCESSING_TIME else is_in_processing_time(kind)
            time = panes.last[pane] if at_end else panes.values[at]
            drop_timer(in_processing_time, time, program, settings, panes, pane)
        panes.marks[at] = 0
        panes.values[at] = 0


def wait(i: int, time: int, program: Program, panes: Panes, pane: int) -> None:
    """Set the timer of a continuous trigger: the interval after ``time``, or the window's end."""
    interval, last = program.nodes[i * NODE + FIRST], panes.last[pane]
    at = pane * program.thresholds.size + i
    fits = last >= LONG_MIN + interval and time <= last - interval
    panes.values[at] = time + interval if fits else last
    panes.marks[at] = SET | TIMED


def distance_of(kind: int, old: float, new: float) -> float:
    """Return how far apart two values are."""
    if kind == OLD_MINUS_NEW:
        return old - new
    return new - old if kind == NEW_MINUS_OLD else abs(old - new)


def on_row(
    time: int, i: int, value: float, program: Program, settings: Settings, panes: Panes, pane: int
) -> int:
    """Ask a trigger that is not made of others about a row; return the bits of its result."""
    kind, at = program.nodes[i * NODE + KIND], pane * program.thresholds.size + i
    first, second = program.nodes[i * NODE + FIRST], program.nodes[i * NODE + SECOND]
    has_value = (panes.marks[at] & SET) != 0
    if kind in (EVENT_TIME, CONTINUOUS_EVENT_TIME) and panes.last[pane] <= settings.watermark:
        return FIRE
    if kind in (EVENT_TIME, CONTINUOUS_EVENT_TIME, END_OF_STREAM):
        panes.timers[pane] |= END
    elif kind == PROCESSING_TIME:
        panes.timers[pane] |= PROCESSING_END
    if kind == CONTINUOUS_EVENT_TIME and not has_value:
        wait(i, interval_start(time, first), program, panes, pane)
    elif kind == CONTINUOUS_PROCESSING_TIME and not has_value:
        wait(i, interval_start(settings.processing_time, first), program, panes, pane)
    elif kind == COUNT:
        panes.values[at] += 1
        if panes.values[at] < first:  # it may be greater: merged sessions add their counts up
            return 0
        panes.values[at] = 0
        return FIRE
    elif kind == DELTA:
        if (
            has_value
            and not distance_of(second, panes.references[at], value) > program.thresholds[i]
        ):
            return 0
        panes.references[at] = value
        panes.marks[at] = SET
        return FIRE if has_value else 0
    return 0


def on_timer(how: int, time: int, i: int, program: Program, panes: Panes, pane: int) -> int:
    """Ask a trigger that is not made of others about a timer; return the bits of its result."""
    kind, at = program.nodes[i * NODE + KIND], pane * program.thresholds.size + i
    in_processing_time = how == PROCESSING_TIMER
    if kind == PROCESSING_TIME:
        return FIRE if in_processing_time else 0
    if kind in (EVENT_TIME, END_OF_STREAM):
        return FIRE if not in_processing_time and time == panes.last[pane] else 0
    if kind != (CONTINUOUS_PROCESSING_TIME if in_processing_time else CONTINUOUS_EVENT_TIME):
        return 0
    if time == panes.last[pane]:
        return FIRE
    if (panes.marks[at] & SET) == 0 or panes.values[at] != time:
        return 0
    wait(i, time, program, panes, pane)
    return FIRE


def choose_part(
    how: int, time: int, i: int, program: Program, settings: Settings, panes: Panes, pane: int
) -> tuple[int, int]:
    """Return the part of an EARLY_AND_LATE node that is asked, or -1 and the node's own result."""
    last, at = panes.last[pane], pane * program.thresholds.size + i
    early, late = program.nodes[i * NODE + FIRST], program.nodes[i * NODE + SECOND]
    fired = (panes.marks[at] & SET) != 0  # at the window's end
    if how == EVENT_TIMER and time == last and not fired:
        if early >= 0:
            end = program.nodes[early * NODE + AFTER]
            clear_nodes(early, end, program, settings, panes, pane)
        panes.marks[at] = SET
        return -1, FIRE
    if how == ELEMENT:
        if last > settings.watermark:
            panes.timers[pane] |= END
        elif late < 0 or not fired:
            return -1, FIRE
    return (late if fired else early), 0


def time_out(
    how: int, i: int, inner: int, program: Program, settings: Settings, panes: Panes, pane: int
) -> int:
    """Return the result of a TIMEOUT node whose inner trigger said ``inner``."""
    at = pane * program.thresholds.size + program.nodes[i * NODE + KEEPER]
    flags, end = program.nodes[i * NODE + SECOND], program.nodes[i * NODE + AFTER]
    clears = (inner & FIRE) if how == ELEMENT else (flags & CLEARS)
    if clears != 0:
        clear_nodes(i, end, program, settings, panes, pane)
    if how != ELEMENT:
        return FIRE | (inner & PURGE)
    if (inner & FIRE) != 0:
        return inner
    if (panes.marks[at] & SET) != 0 and (flags & RESETS) != 0:
        drop_timer(1, panes.values[at], program, settings, panes, pane)
        panes.marks[at] = 0
    if (panes.marks[at] & SET) == 0:
        timeout = program.nodes[i * NODE + FIRST]
        panes.values[at] = cleanup_time(settings.processing_time, timeout)  # or the end of time
        panes.marks[at] = SET | TIMED
    return inner


def result_at(node: int, fires: int, purges: int) -> int:
    """Return the result of a node from the bits of all; 0 if there is no such node."""
    if node < 0:
        return 0
    return ((fires >> node) & 1) | (((purges >> node) & 1) << 1)


def ask_node(
    how: int, time: int, i: int, fires: int, purges: int, value: float,
    program: Program, settings: Settings, panes: Panes, pane: int,
) -> int:  # fmt: skip
    """Return the result of a node whose parts have said theirs (``fires``, ``purges``)."""
    kind, inner = program.nodes[i * NODE + KIND], result_at(i + 1, fires, purges)
    if kind == PURGING:
        return FIRE | PURGE if (inner & FIRE) != 0 else inner
    if kind == TIMEOUT:
        return time_out(how, i, inner, program, settings, panes, pane)
    if kind == EARLY_AND_LATE:
        early = result_at(program.nodes[i * NODE + FIRST], fires, purges)
        return early | result_at(program.nodes[i * NODE + SECOND], fires, purges)
    if how == ELEMENT:
        return on_row(time, i, value, program, settings, panes, pane)
    return on_timer(how, time, i, program, panes, pane)


def ask(
    how: int, time: int, row: int, elements: Elements,
    program: Program, settings: Settings, panes: Panes, pane: int,
) -> int:  # fmt: skip
    """Ask a trigger about a row (``time`` is its timestamp) or a timer; return its result."""
    count = program.thresholds.size
    asked, fires, purges = 1, 0, 0
    for i in range(count):  # from the root to the leaves: who is asked
        kind = program.nodes[i * NODE + KIND] if (asked >> i) & 1 else NEVER
        if kind == EARLY_AND_LATE:
            part, result = choose_part(how, time, i, program, settings, panes, pane)
            fires |= result << i
            asked |= 1 << part if part >= 0 else 0
        elif kind in (PURGING, TIMEOUT):
            asked |= 1 << (i + 1)
    for i in range(count - 1, -1, -1):  # from the leaves to the root: what they say
        if (asked >> i) & 1:
            value = 0.0
            if how == ELEMENT and program.nodes[i * NODE + KIND] == DELTA:
                value = elements.lanes[program.nodes[i * NODE + FIRST] * elements.ts.size + row]
            result = ask_node(how, time, i, fires, purges, value, program, settings, panes, pane)
            fires |= (result & FIRE) << i
            purges |= (result >> 1) << i
    return result_at(0, fires, purges)


# ---- triggers of panes that merge (Flink: Trigger.onMerge)


def merge_nodes(target: int, other: int, program: Program, panes: Panes) -> None:
    """Add what a trigger kept for a session to what it keeps for another: counts, least times."""
    count = program.thresholds.size
    for i in range(count):
        kind, at, source = program.nodes[i * NODE + KIND], target * count + i, other * count + i
        if kind == COUNT:
            panes.values[at] += panes.values[source]
        elif (panes.marks[source] & SET) != 0:
            if (panes.marks[at] & SET) == 0 or panes.values[source] < panes.values[at]:
                panes.values[at] = panes.values[source]
            panes.marks[at] = SET
        panes.marks[source] = 0
        panes.values[source] = 0


def wait_again(pane: int, program: Program, settings: Settings, panes: Panes) -> None:
    """Set the timers of a trigger again for a merged session (Flink: Trigger.onMerge)."""
    count = program.thresholds.size
    panes.timers[pane] = 0
    for i in range(count):
        kind, at = program.nodes[i * NODE + KIND], pane * count + i
        if kind in (EVENT_TIME, EARLY_AND_LATE):
            panes.marks[at] = 0
            if panes.last[pane] > settings.watermark:
                panes.timers[pane] |= END
        elif kind == END_OF_STREAM:
            panes.timers[pane] |= END
        elif kind == PROCESSING_TIME:
            if panes.last[pane] > settings.processing_time:
                panes.timers[pane] |= PROCESSING_END
        elif (panes.marks[at] & SET) != 0:
            panes.marks[at] = SET | TIMED
