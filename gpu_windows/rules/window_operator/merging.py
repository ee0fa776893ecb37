"""How the sessions of a key merge: Flink's MergingWindowSet as scalar functions.

A key is a *unit*: its sessions are panes (`gpu_windows.rules.window_operator.panes`), linked in
order of time. A row starts its search at the session that the row before it was put into.
"""

from __future__ import annotations

from gpu_windows.rules import cleanup_time, is_late
from gpu_windows.rules.window_operator.contents import forget
from gpu_windows.rules.window_operator.layout import (
    ELEMENT,
    Elements,
    Events,
    Panes,
    Program,
    Sessions,
    Settings,
    Units,
)
from gpu_windows.rules.window_operator.panes import begin_pane, hand_over, run_pane
from gpu_windows.rules.window_operator.triggers import merge_nodes, wait_again

#: Java's hash sets have this many places at least, and are at most three quarters full.
_MIN_PLACES = 16
# The constants of Flink's MathUtils.bitMix, as signed numbers; shifts there are unsigned.
_MIX_1, _MIX_2 = -4658895280553007687, -7723592293110705685
_BITS_30, _BITS_27, _BITS_31 = 2**34 - 1, 2**37 - 1, 2**33 - 1
_INT = 2**32 - 1


def hash_of(start: int, last: int, ticks_per_ms: int) -> int:
    """Return the hash of Flink's TimeWindow, spread as java.util.HashMap does."""
    mixed = start // ticks_per_ms + (last + 1) // ticks_per_ms
    mixed = (mixed ^ ((mixed >> 30) & _BITS_30)) * _MIX_1
    mixed = (mixed ^ ((mixed >> 27) & _BITS_27)) * _MIX_2
    short = (mixed ^ ((mixed >> 31) & _BITS_31)) & _INT
    return short ^ (short >> 16)


def open_session(pane: int, start: int, last: int, settings: Settings, panes: Panes) -> None:
    """Give a pane a window."""
    panes.start[pane] = start
    panes.last[pane] = last
    panes.cleanup[pane] = cleanup_time(last, settings.lateness)
    panes.alive[pane] = 1


def link(pane: int, before: int, after: int, sessions: Sessions) -> None:
    """Put a session between two others."""
    sessions.before[pane] = before
    sessions.after[pane] = after
    if before >= 0:
        sessions.after[before] = pane
    if after >= 0:
        sessions.before[after] = pane


def search(unit: int, start: int, panes: Panes, sessions: Sessions) -> tuple[int, int]:
    """Return the first session that ends at ``start`` or later, or -1, and the one before it."""
    at = sessions.finger[unit]
    if at < 0:
        return -1, -1
    while sessions.before[at] >= 0 and panes.last[sessions.before[at]] + 1 >= start:
        at = sessions.before[at]
    before = sessions.before[at]
    while at >= 0 and panes.last[at] + 1 < start:
        before = at
        at = sessions.after[at]
    return at, before


def next_part(
    first: int, count: int, place: int, number: int,
    settings: Settings, panes: Panes, sessions: Sessions,
) -> tuple[int, int, int]:  # fmt: skip
    """Return the part that comes next in Java's hash set, its place there and its number in time.

    ``place`` and ``number`` are those of the part before; the parts and the row's own window are
    in the set.
    """
    places = _MIN_PLACES
    while 4 * (count + 1) > 3 * places:
        places *= 2
    found, found_place, found_number = -1, places, count
    at = first
    for i in range(count):
        bucket = hash_of(panes.start[at], panes.last[at], settings.ticks_per_ms) & (places - 1)
        later = bucket > place or (bucket == place and i > number)
        if later and bucket < found_place:
            found, found_place, found_number = at, bucket, i
        at = sessions.after[at]
    return found, found_place, found_number


def absorb(target: int, other: int, panes: Panes, elements: Elements) -> None:
    """Append the contents of a session to those of another."""
    if panes.list_length[other] > 0:
        if panes.list_length[target] > 0:
            elements.following[panes.tail[target]] = panes.head[other]
        else:
            panes.head[target] = panes.head[other]
        panes.tail[target] = panes.tail[other]
        panes.list_length[target] += panes.list_length[other]
    panes.row_count[target] += panes.row_count[other]
    panes.fired[target] += panes.fired[other]
    panes.row_count[other] = 0
    panes.alive[other] = 0
    forget(panes, other)


def merge(
    first: int, count: int, start: int, end: int, program: Program,
    settings: Settings, panes: Panes, elements: Elements, sessions: Sessions,
) -> int:  # fmt: skip
    """Make ``count`` sessions from ``first`` on, and [start, end), one; return its pane.

    The contents are put together in the order of Java's hash set of the windows.
    """
    last = first
    for _ in range(count - 1):
        last = sessions.after[last]
    before, after = sessions.before[first], sessions.after[last]
    low, high = min(start, panes.start[first]), max(end - 1, panes.last[last])
    target, place, number = -1, -1, -1
    for i in range(count):
        part, place, number = next_part(first, count, place, number, settings, panes, sessions)
        if i == 0:
            target = part
        else:
            absorb(target, part, panes, elements)
            merge_nodes(target, part, program, panes)
    open_session(target, low, high, settings, panes)
    link(target, before, after, sessions)
    wait_again(target, program, settings, panes)
    return target


def join(
    row: int, unit: int, program: Program, settings: Settings,
    panes: Panes, elements: Elements, sessions: Sessions,
) -> int:  # fmt: skip
    """Return the session that a row becomes part of, after merging; -1 if it comes too late."""
    start, end = sessions.opens[row], sessions.closes[row]
    at, before = search(unit, start, panes, sessions)
    count, touching = 0, at
    while touching >= 0 and panes.start[touching] <= end:
        count += 1
        touching = sessions.after[touching]
    if count == 0:
        if settings.is_event_time and is_late(end - 1, settings.lateness, settings.watermark):
            return -1
        at = sessions.free[unit]
        sessions.free[unit] = at + 1
        open_session(at, start, end - 1, settings, panes)
        link(at, before, touching, sessions)
    elif count > 1 or start < panes.start[at] or end - 1 > panes.last[at]:
        at = merge(at, count, start, end, program, settings, panes, elements, sessions)
    sessions.finger[unit] = at
    return at


def begin_unit(
    unit: int, units: Units, settings: Settings, panes: Panes, elements: Elements,
    sessions: Sessions,
) -> None:  # fmt: skip
    """Link the sessions of a key in order of time."""
    first = units.panes[unit]
    end = first + units.session_count[unit]
    sessions.free[unit] = end
    sessions.finger[unit] = end - 1 if end > first else -1
    for pane in range(first, end):
        begin_pane(pane, units.begins[pane], units.stops[pane], settings, panes, elements)
        sessions.before[pane] = pane - 1 if pane > first else -1
        sessions.after[pane] = pane + 1 if pane + 1 < end else -1


def run_unit(
    unit: int, program: Program, settings: Settings, panes: Panes, elements: Elements,
    units: Units, sessions: Sessions, events: Events,
) -> None:  # fmt: skip
    """Give the sessions of a key its new rows, then fire their due timers."""
    begin_unit(unit, units, settings, panes, elements, sessions)
    element, end, next_pane = units.news[unit], units.ends[unit], units.panes[unit]
    while element < end or next_pane < sessions.free[unit]:
        first, advance = element, ELEMENT
        if element < end:
            row = elements.rows[element]
            pane = join(row, unit, program, settings, panes, elements, sessions)
            sessions.late[row] = pane < 0
            element += 1
        else:
            pane, advance = next_pane, settings.advance
            next_pane += 1
        if pane >= 0 and panes.alive[pane]:
            run_pane(pane, first, element, advance, program, settings, panes, elements, events)
            if first == element:
                hand_over(pane, settings, panes, elements, events)
