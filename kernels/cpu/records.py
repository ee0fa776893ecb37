"""Types of the named tuples that the state machine takes."""

from __future__ import annotations

from gpu_windows.kernels.argument_types import record
from gpu_windows.rules.window_operator.layout import (
    Elements,
    Events,
    Panes,
    Program,
    Sessions,
    Settings,
    Units,
)

PROGRAM = record(Program, "if")
SETTINGS = record(Settings, "I" * 13 + "F")
PANES = record(Panes, "iiiifbbiiiiib")
ELEMENTS = record(Elements, "iiif")
EVENTS = record(Events, "iiiiiiiibii")
UNITS = record(Units, "iiiiii")
SESSIONS = record(Sessions, "iibiiii")
