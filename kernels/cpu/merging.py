"""Run the sessions of keys: they merge, so those of a key run together."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpu_windows.kernels.compile import kernel
from gpu_windows.kernels.cpu import machine
from gpu_windows.kernels.cpu.machine import (
    ELEMENTS,
    EVENTS,
    PANES,
    PROGRAM,
    SESSIONS,
    SETTINGS,
    UNITS,
    Run,
    run_with_room,
)
from gpu_windows.rules.window_operator.layout import (
    Elements,
    Events,
    Panes,
    Program,
    Sessions,
    Settings,
    Units,
)

Ints = NDArray[np.int64]


class Spans(NamedTuple):
    """The session that every row would be by itself: [open, close).

    Parameters
    ----------
    opens, closes : int64[n]
        First tick and end of every row's own session.
    """

    opens: Ints
    closes: Ints


def run(
    program: Program, settings: Settings, panes: Panes, elements: Elements, units: Units,
    spans: Spans,
) -> Run:  # fmt: skip
    """Put new rows into sessions, and fire due timers.

    Parameters
    ----------
    program : Program
        The trigger.
    settings : Settings
    panes : Panes
        Of every key its sessions, in order of time, then as many free places as it has new rows.
        Not changed.
    elements : Elements
        Of every key the rows of its sessions, then the new ones in order of arrival. Of
        ``following`` only the shape counts: it is written to.
    units : Units
        The keys.
    spans : Spans
        Of every row that ``elements.rows`` may name.

    Returns
    -------
    Run
        The units are the keys; ``late`` marks the rows that are in no session.
    """

    def work(after: Panes, events: Events) -> NDArray[np.int8]:
        sessions = _unlinked_sessions(units, panes, spans)
        _run(program, settings, after, elements, units, sessions, events)
        late: NDArray[np.int8] = sessions.late
        return late

    return Run(*run_with_room(panes, len(elements.rows), work))


def _unlinked_sessions(units: Units, panes: Panes, spans: Spans) -> Sessions:
    before, after = np.full((2, len(panes.last)), -1, np.int64)
    finger, free = np.full((2, len(units.session_count)), -1, np.int64)
    late = np.zeros(len(spans.opens), np.int8)
    return Sessions(*spans, late, before, after, finger, free)


@kernel((PROGRAM, SETTINGS, PANES, ELEMENTS, UNITS, SESSIONS, EVENTS))
def _run(
    program: Any, settings: Any, panes: Any, elements: Any, units: Any, sessions: Any, events: Any
) -> None:
    for unit in range(units.session_count.size):
        machine.run_unit(unit, program, settings, panes, elements, units, sessions, events)
