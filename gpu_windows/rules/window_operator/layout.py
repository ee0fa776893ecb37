"""Array layout of the window state machine, and the names of its codes."""

from __future__ import annotations

from typing import Any, NamedTuple

# ---- the numbers of things

#: Numbers of a node in `Program.nodes`: its kind, the node after its subtree, two of its own, and
#: the node under which it keeps its value. That is itself; but a timeout within a timeout shares
#: the value of the outer one, as in Flink, where state goes by its name.
KIND, AFTER, FIRST, SECOND, KEEPER = 0, 1, 2, 3, 4
NODE = 5

#: Most nodes of a program: who is asked is a bit each of an int64.
MAX_NODES = 62

#: Bits of a trigger's result.
FIRE, PURGE = 1, 2

#: What a trigger is asked about, and what caused a firing. REST is no firing: it hands over the
#: rows that no firing has taken.
ELEMENT, EVENT_TIMER, PROCESSING_TIMER, REST = 0, 1, 2, 3

#: Bits of `Panes.marks`: the node keeps a value, or that its window has fired at its end; its timer
#: waits for that value.
SET, TIMED = 1, 2

#: Bits of `Panes.timers`: for the window's end, in event time and in processing time; for cleanup,
#: and for cleanup of which the trigger is not asked, for it has taken a timer of that time back.
END, PROCESSING_END, CLEANUP, SILENT = 1, 2, 4, 8

#: Distances of `gpu_windows.vocabulary.deltas.Delta`.
OLD_MINUS_NEW, NEW_MINUS_OLD, ABS_DIFF = 0, 1, 2

#: Evictors.
NO_EVICTOR, BY_COUNT, BY_TIME, BY_DELTA = 0, 1, 2, 3


# ---- what they are kept in


class Program(NamedTuple):
    """A trigger: its tree in pre-order.

    Parameters
    ----------
    nodes : int64[NODE * n]
        KIND, AFTER, FIRST, SECOND and KEEPER of every node. FIRST and SECOND are: of continuous
        triggers the interval; of COUNT the limit; of DELTA lane and distance; of TIMEOUT timeout
        and flags; of EARLY_AND_LATE the nodes of its parts, or -1.
    thresholds : float64[n]
        Of DELTA nodes.
    """

    nodes: Any
    thresholds: Any


class Settings(NamedTuple):
    """Numbers that are the same for all panes of a call.

    Parameters
    ----------
    watermark, processing_time : int
        While rows come.
    advance, until : int
        EVENT_TIMER or PROCESSING_TIMER when those timers are due after the rows, and up to when;
        else ELEMENT.
    is_end : int
        Whether this was all, so that nothing is handed over.
    takes_all : int
        Whether a firing takes all elements of the window; else those since the last one.
    is_event_time : int
        Whether windows end with the watermark, or in processing time.
    evictor : int
        NO_EVICTOR, BY_COUNT, BY_TIME or BY_DELTA.
    after : int
        Whether it evicts after the function.
    limit : int
        Rows, ticks, or the lane of a delta.
    distance : int
        How a delta evictor compares: OLD_MINUS_NEW, NEW_MINUS_OLD or ABS_DIFF.
    lateness : int
        How long after its end a window is kept, in ticks.
    ticks_per_ms : int
        Ticks of a millisecond: Flink's hash of a window is of milliseconds.
    threshold : float
        Of a delta evictor: from which distance on a row is dropped.
    """

    watermark: Any
    processing_time: Any
    advance: Any
    until: Any
    is_end: Any
    takes_all: Any
    is_event_time: Any
    evictor: Any
    after: Any
    limit: Any
    distance: Any
    lateness: Any
    ticks_per_ms: Any
    threshold: Any


class Panes(NamedTuple):
    """The state of panes; s panes, n nodes.

    Parameters
    ----------
    start, last : int64[s]
        First and last tick of the window.
    cleanup : int64[s]
        When it is dropped; LONG_MAX is never.
    values, references : int64[s * n], float64[s * n]
        What the nodes keep: counts, times that are waited for; references of deltas.
    marks : int8[s * n]
        Bits SET and TIMED of every node.
    timers : int8[s]
        Bits END, PROCESSING_END, CLEANUP and SILENT.
    fired : int64[s]
        Firings so far.
    row_count : int64[s]
        Rows of the contents.
    head, tail, list_length : int64[s]
        First and last of the elements that the next firing takes, and how many they are.
    alive : int8[s]
        0 once it was dropped, or merged into another.
    """

    start: Any
    last: Any
    cleanup: Any
    values: Any
    references: Any
    marks: Any
    timers: Any
    fired: Any
    row_count: Any
    head: Any
    tail: Any
    list_length: Any
    alive: Any


class Elements(NamedTuple):
    """Elements of windows: a row in one window, or the contents of a session before the call.

    Parameters
    ----------
    rows : int64[p]
        The row of every element; numbers from that of rows on are those of sessions.
    following : int64[p]
        The element after it in its window.
    ts : int64[n]
        Timestamps of the rows; LONG_MIN for sessions that are elements.
    lanes : float64[l * n]
        Columns that deltas compare; NaN for these.
    """

    rows: Any
    following: Any
    ts: Any
    lanes: Any


class Events(NamedTuple):
    """The firings that a call makes, and what is left (REST); e events.

    Parameters
    ----------
    cursors : int64[2]
        Where the next event goes, and its first element.
    pane, start, last, fired : int64[e]
        Pane, window, and how often it had fired before.
    cause, time : int64[e]
        The time is that of the timer.
    element : int64[e]
        The element that made it fire, or -1.
    fresh : int8[e]
        Whether the contents begin with these elements; else with those of earlier events.
    begin : int64[e]
        Where its elements begin in ``elements``.
    elements : int64[t]
        Elements that events took, one event after the other.
    """

    cursors: Any
    pane: Any
    start: Any
    last: Any
    fired: Any
    cause: Any
    time: Any
    element: Any
    fresh: Any
    begin: Any
    elements: Any


class Sessions(NamedTuple):
    """The sessions of some keys; r rows, s panes, u units.

    Parameters
    ----------
    opens, closes : int64[r]
        First tick and end of every row's own session.
    late : int8[r]
        Set where a row is in no window, for it came too late.
    before, after : int64[s]
        The neighbours of a session in time, or -1.
    finger : int64[u]
        A session of the key, or -1.
    free : int64[u]
        The place of its next new session among the panes.
    """

    opens: Any
    closes: Any
    late: Any
    before: Any
    after: Any
    finger: Any
    free: Any


class Units(NamedTuple):
    """Where the panes and the elements of every key are; u units, s panes.

    Parameters
    ----------
    panes : int64[u + 1]
        Where its panes begin, and the last ones end.
    session_count : int64[u]
        How many sessions it has; its other places are free.
    news, ends : int64[u]
        Where its new elements begin and end.
    begins, stops : int64[s]
        The elements of every session that there is.
    """

    panes: Any
    session_count: Any
    news: Any
    ends: Any
    begins: Any
    stops: Any
