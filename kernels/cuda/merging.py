"""Run the sessions of keys, a thread a key: they merge, so those of a key run together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_windows.kernels.cuda import machine, primitives
from gpu_windows.kernels.cuda.compiler import cuda
from gpu_windows.kernels.cuda.kernel import kernel
from gpu_windows.kernels.cuda.types import INT
from gpu_windows.kernels.machine import Run, allocate, counting, no_sessions
from gpu_windows.kernels.records import (
    ELEMENTS,
    EVENTS,
    PROGRAM,
    SESSIONS,
    SETTINGS,
    SLOTS,
    UNITS,
)
from gpu_windows.rules.window_operator.layout import Elements, Program, Settings, Slots, Units


def run(
    program: Program, settings: Settings, slots: Slots, elements: Elements, units: Units,
    opens: NDArray[np.int64], closes: NDArray[np.int64],
) -> Run:  # fmt: skip
    """Put new rows into sessions, fire due timers, and say what came of it.

    All arrays are the host's.

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
    count, place = len(units.known), primitives.place
    fixed = place(program), settings
    rest = place(elements), place(units)
    unlinked = no_sessions(units, slots, opens, closes)
    events = place(counting(count))
    _run(count, 0, *fixed, place(slots), *rest, place(unlinked), events)
    after, sessions = place(slots), place(unlinked)
    events = place(allocate(primitives.to_host(events.cursors)))
    _run(count, 1, *fixed, after, *rest, sessions, events)
    late = primitives.to_host(sessions.late)
    return Run(primitives.fetch(after), primitives.fetch(events), late)


@kernel((INT, PROGRAM, SETTINGS, SLOTS, ELEMENTS, UNITS, SESSIONS, EVENTS))
def _run(
    fill: Any, program: Any, settings: Any, slots: Any, elements: Any, units: Any, sessions: Any,
    events: Any,
) -> None:  # fmt: skip
    for unit in range(cuda.grid(1), units.known.size, cuda.gridsize(1)):
        machine.run_unit(
            unit, unit, fill, program, settings, slots, elements, units, sessions, events
        )
