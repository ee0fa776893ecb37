"""Run the sessions of keys: they merge, so those of a key run together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_windows.kernels.compile import kernel
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
    opens: NDArray[np.int64], closes: NDArray[np.int64],
) -> Run:  # fmt: skip
    """Put new rows into sessions, fire due timers, and say what came of it.

    Parameters
    ----------
    program : Program
    settings : Settings
    slots : Slots
        Of every key the sessions that there are, in order of time, then as many free slots as it
        has new rows. Not changed.
    elements : Elements
        Of every key the rows of its sessions, then the new ones in order of arrival.
    units : Units
    opens, closes : int64[r]
        First tick and end of every row's own session.

    Returns
    -------
    Run
        ``late`` says which rows are in no session.
    """

    def work(after: Slots, events: Events) -> NDArray[np.int8]:
        sessions = no_sessions(units, slots, opens, closes)
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
