"""Flink's rules, compiled by ``numba.njit``."""

from __future__ import annotations

from gpu_windows.kernels.compile import compile_rules, inner

_COMPILED = compile_rules(inner(inline="always", error_model="numpy"))

better = _COMPILED["better"]
cleanup_time = _COMPILED["cleanup_time"]
cleanup_timer = _COMPILED["cleanup_timer"]
difference = _COMPILED["difference"]
end_of = _COMPILED["end_of"]
first_slice = _COMPILED["first_slice"]
first_window = _COMPILED["first_window"]
fold = _COMPILED["fold"]
halves_of = _COMPILED["halves_of"]
halves_of_range = _COMPILED["halves_of_range"]
high_half = _COMPILED["high_half"]
interval_start = _COMPILED["interval_start"]
is_earlier_nearer = _COMPILED["is_earlier_nearer"]
is_far = _COMPILED["is_far"]
is_late = _COMPILED["is_late"]
last_slice = _COMPILED["last_slice"]
last_window = _COMPILED["last_window"]
last_window_before = _COMPILED["last_window_before"]
low_half = _COMPILED["low_half"]
moments = _COMPILED["moments"]
must_reach = _COMPILED["must_reach"]
precedes = _COMPILED["precedes"]
same_block = _COMPILED["same_block"]
add_saturating = _COMPILED["add_saturating"]
shifted_moments = _COMPILED["shifted_moments"]
slice_by_reciprocal = _COMPILED["slice_by_reciprocal"]
slice_start = _COMPILED["slice_start"]
start_of = _COMPILED["start_of"]
status_of = _COMPILED["status_of"]
tick_of = _COMPILED["tick_of"]
two_sum = _COMPILED["two_sum"]
unit_by_reciprocal = _COMPILED["unit_by_reciprocal"]
wide_moments = _COMPILED["wide_moments"]
words_of = _COMPILED["words_of"]
