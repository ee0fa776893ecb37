"""The state machine of a window, compiled by ``numba.njit``, and its memory.

Flink's window operator (`gpu_windows.rules.window_operator`). No kernel of a device runs it: docs/
strategies.md has the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from gpu_windows.kernels.argument_types import record
from gpu_windows.kernels.compile import INNER, compile_rules, inner
from gpu_windows.kernels.cpu import rules
from gpu_windows.rules import window_operator
from gpu_windows.rules.window_operator.layout import (
    Elements,
    Events,
    Panes,
    Program,
    Sessions,
    Settings,
    Units,
)

T = TypeVar("T")

#: Types of the named tuples that it takes.
PROGRAM = record(Program, "if")
SETTINGS = record(Settings, "I" * 13 + "F")
PANES = record(Panes, "iiiifbbiiiiib")
ELEMENTS = record(Elements, "iiif")
EVENTS = record(Events, "iiiiiiiibii")
UNITS = record(Units, "iiiiii")
SESSIONS = record(Sessions, "iibiiii")

#: Types of the arrays of `Events` after the cursors.
_EVENT_TYPES = (*(np.int64,) * 7, np.int8, np.int64)

_COMPILED = compile_rules(inner(**INNER), window_operator, rules.COMPILED)

begin_pane = _COMPILED["begin_pane"]
hand_over = _COMPILED["hand_over"]
run_pane = _COMPILED["run_pane"]
run_unit = _COMPILED["run_unit"]


@dataclass(frozen=True)
class Run:
    """Result of a run of the state machine.

    Parameters
    ----------
    panes : Panes
        Their state after the run.
    events : Events
        By unit (pane or key), those of a unit in their order.
    late : int8[r]
        Which rows are in no session because they came too late; empty for other windows.
    """

    panes: Panes
    events: Events
    late: NDArray[np.int8]


def run_with_room(
    panes: Panes, elements: int, run: Callable[[Panes, Events], T]
) -> tuple[Panes, Events, T]:
    """Run a state machine with enough memory for its events.

    Memory that is not touched costs nothing, so the first allocation is large enough for most runs;
    otherwise the machine runs again with as much as it counted.

    Parameters
    ----------
    panes : Panes
        Not changed.
    elements : int
        Number of elements of all panes.
    run : callable
        Changes the panes and events that it is given; may return something.

    Returns
    -------
    Panes, Events, object
        The panes after the run, its events, and what ``run`` returned.
    """
    max_events, max_taken = 4 * len(panes.last) + elements, 2 * elements
    while True:
        after = Panes(*(part.copy() for part in panes))
        events = _allocate_events(max_events, max_taken)
        returned = run(after, events)
        count, taken_count = (int(n) for n in events.cursors)
        if count <= max_events and taken_count <= max_taken:
            break
        max_events, max_taken = count, taken_count
    parts = (part[:count] for part in events[1:-1])
    return after, Events._make([events.cursors, *parts, events.elements[:taken_count]]), returned


def _allocate_events(count: int, taken_count: int) -> Events:
    arrays = [np.empty(count, dtype) for dtype in _EVENT_TYPES]
    return Events._make([np.zeros(2, np.int64), *arrays, np.empty(taken_count, np.int64)])
