"""The state machine of a window, compiled by ``numba.njit``."""

from __future__ import annotations

from gpu_windows.kernels.compile import INNER, compile_machine, inner
from gpu_windows.kernels.cpu import rules

_COMPILED = compile_machine(inner(**INNER), rules)

begin_pane = _COMPILED["begin_pane"]
hand_over = _COMPILED["hand_over"]
run_pane = _COMPILED["run_pane"]
run_unit = _COMPILED["run_unit"]
