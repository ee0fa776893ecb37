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
    PROGRAM,
    SESSIONS,
    SETTINGS,
    SLOTS,
    UNITS,
)
from gpu_windows.rules.window_operator.layout import (
    Elements,
    Events,
    Program,
    Settings,
    Slots,
    Units,
)


def run(
    program: Program, settings: Settings, slots: Slots, elements: Elements, units: Units,
    spans: Spans,
) -> Run:  # fmt: skip
    """See `contract.machines.Merging.run`."""

    def work(after: Slots, events: Events) -> NDArray[np.int8]:
        sessions = no_sessions(units, slots, *spans)
        _run(program, settings, after, elements, units, sessions, events)
        late: NDArray[np.int8] = sessions.late
        return late

    return Run(*run_in_guessed_memory(slots, len(elements.rows), work))


@kernel((PROGRAM, SETTINGS, SLOTS, ELEMENTS, UNITS, SESSIONS, EVENTS))
def _run(
    program: Any, settings: Any, slots: Any, elements: Any, units: Any, sessions: Any, events: Any
) -> None:
    for unit in range(units.known.size):
        machine.run_unit(unit, 0, 1, program, settings, slots, elements, units, sessions, events)
