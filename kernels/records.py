"""Numba types of the named tuples that the state machine works on, for both back ends."""

from __future__ import annotations

import numba
import numpy as np
from numba import types

from gpu_windows.rules.window_operator.layout import (
    Elements,
    Events,
    Panes,
    Program,
    Sessions,
    Settings,
    Units,
)


def tuple_of(kind: type, letters: str) -> types.Type:
    """Return the type of a named tuple.

    ``letters``: i, f and b for arrays of int64, float64 and int8; I and F for scalars.
    """
    arrays = {"i": np.empty(0, np.int64), "f": np.empty(0), "b": np.empty(0, np.int8)}
    return numba.typeof(kind(*({**arrays, "I": 0, "F": 0.0}[letter] for letter in letters)))


PROGRAM = tuple_of(Program, "if")
SETTINGS = tuple_of(Settings, "I" * 13 + "F")
PANES = tuple_of(Panes, "iiiifbbiiiiib")
ELEMENTS = tuple_of(Elements, "iiif")
EVENTS = tuple_of(Events, "iiiiiiiibii")
UNITS = tuple_of(Units, "iiiiii")
SESSIONS = tuple_of(Sessions, "iibiiii")
