"""Run the sessions of keys, a thread a key: they merge, so those of a key run together."""

from __future__ import annotations

from typing import Any

from gpu_windows.kernels.contract.machines import Spans
from gpu_windows.kernels.cuda import machine, primitives
from gpu_windows.kernels.cuda.compiler import cuda
from gpu_windows.kernels.cuda.kernel import kernel
from gpu_windows.kernels.cuda.types import (
    ELEMENTS,
    EVENTS,
    INT,
    PANES,
    PROGRAM,
    SESSIONS,
    SETTINGS,
    UNITS,
)
from gpu_windows.kernels.machine import Run, allocate, counting, no_sessions
from gpu_windows.rules.window_operator.layout import Elements, Panes, Program, Settings, Units


def run(
    program: Program, settings: Settings, panes: Panes, elements: Elements, units: Units,
    spans: Spans,
) -> Run:  # fmt: skip
    """See `contract.machines.Merging.run`."""
    count, place = len(units.known), primitives.place
    fixed = place(program), settings
    rest = place(elements), place(units)
    unlinked = no_sessions(units, panes, *spans)
    events = place(counting(count))
    _run(count, 0, *fixed, place(panes), *rest, place(unlinked), events)
    after, sessions = place(panes), place(unlinked)
    events = place(allocate(primitives.to_host(events.cursors)))
    _run(count, 1, *fixed, after, *rest, sessions, events)
    late = primitives.to_host(sessions.late)
    return Run(primitives.fetch(after), primitives.fetch(events), late)


@kernel((INT, PROGRAM, SETTINGS, PANES, ELEMENTS, UNITS, SESSIONS, EVENTS))
def _run(
    fill: Any, program: Any, settings: Any, panes: Any, elements: Any, units: Any, sessions: Any,
    events: Any,
) -> None:  # fmt: skip
    for unit in range(cuda.grid(1), units.known.size, cuda.gridsize(1)):
        machine.run_unit(
            unit, unit, fill, program, settings, panes, elements, units, sessions, events
        )
