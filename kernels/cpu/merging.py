"""Run the sessions of keys: they merge, so those of a key run together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_windows.kernels.compile import kernel
from gpu_windows.kernels.contract.machines import Spans
from gpu_windows.kernels.cpu import machine
from gpu_windows.kernels.machine import Run, no_sessions, run_in_guessed_memory
from gpu_windows.kernels.records import (
    ELEMENTS,
    EVENTS,
    PANES,
    PROGRAM,
    SESSIONS,
    SETTINGS,
    UNITS,
)
from gpu_windows.rules.window_operator.layout import (
    Elements,
    Events,
    Panes,
    Program,
    Settings,
    Units,
)


def run(
    program: Program, settings: Settings, panes: Panes, elements: Elements, units: Units,
    spans: Spans,
) -> Run:  # fmt: skip
    """See `contract.machines.Merging.run`."""

    def work(after: Panes, events: Events) -> NDArray[np.int8]:
        sessions = no_sessions(units, panes, *spans)
        _run(program, settings, after, elements, units, sessions, events)
        late: NDArray[np.int8] = sessions.late
        return late

    return Run(*run_in_guessed_memory(panes, len(elements.rows), work))


@kernel((PROGRAM, SETTINGS, PANES, ELEMENTS, UNITS, SESSIONS, EVENTS))
def _run(
    program: Any, settings: Any, panes: Any, elements: Any, units: Any, sessions: Any, events: Any
) -> None:
    for unit in range(units.known.size):
        machine.run_unit(unit, 0, 1, program, settings, panes, elements, units, sessions, events)
