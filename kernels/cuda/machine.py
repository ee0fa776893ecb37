"""The state machine of a window, compiled by ``numba.cuda`` and inlined into kernels."""

from __future__ import annotations

from gpu_windows.kernels.compile import compile_machine
from gpu_windows.kernels.cuda import rules
from gpu_windows.kernels.cuda.compiler import device_function

_COMPILED = compile_machine(device_function, rules)

begin_slot = _COMPILED["begin_slot"]
hand_over = _COMPILED["hand_over"]
run_slot = _COMPILED["run_slot"]
run_unit = _COMPILED["run_unit"]
