"""Flink's rules, compiled by ``numba.cuda`` and inlined into kernels."""

from __future__ import annotations

from gpu_windows.kernels.compile import compile_rules
from gpu_windows.kernels.cuda.compiler import device_function

_COMPILED = compile_rules(device_function)

better = _COMPILED["better"]
bits_of_order = _COMPILED["bits_of_order"]
difference = _COMPILED["difference"]
end_of = _COMPILED["end_of"]
exponent_of = _COMPILED["exponent_of"]
first_slice = _COMPILED["first_slice"]
first_window = _COMPILED["first_window"]
fold = _COMPILED["fold"]
from_units = _COMPILED["from_units"]
halves_of = _COMPILED["halves_of"]
halves_of_range = _COMPILED["halves_of_range"]
high_half = _COMPILED["high_half"]
in_units = _COMPILED["in_units"]
is_earlier_nearer = _COMPILED["is_earlier_nearer"]
last_slice = _COMPILED["last_slice"]
last_window = _COMPILED["last_window"]
last_window_before = _COMPILED["last_window_before"]
low_half = _COMPILED["low_half"]
moments = _COMPILED["moments"]
order_of = _COMPILED["order_of"]
precedes = _COMPILED["precedes"]
add_saturating = _COMPILED["add_saturating"]
shifted_moments = _COMPILED["shifted_moments"]
slice_by_reciprocal = _COMPILED["slice_by_reciprocal"]
start_of = _COMPILED["start_of"]
status_of = _COMPILED["status_of"]
two_sum = _COMPILED["two_sum"]
unit_by_reciprocal = _COMPILED["unit_by_reciprocal"]
wide_moments = _COMPILED["wide_moments"]
words_of = _COMPILED["words_of"]
