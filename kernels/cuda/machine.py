"""The state machine of a window, compiled by ``numba.cuda`` and inlined into kernels."""

from __future__ import annotations

from gpu_windows.kernels.compile import compile_machine
from gpu_windows.kernels.cuda import rules
from gpu_windows.kernels.cuda.compiler import device_function

_COMPILED = compile_machine(device_function, rules)

begin_pane = _COMPILED["begin_pane"]
hand_over = _COMPILED["hand_over"]
run_pane = _COMPILED["run_pane"]
run_unit = _COMPILED["run_unit"]
