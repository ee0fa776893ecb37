"""Flink's rules, compiled by ``numba.njit``: each function of `gpu_windows.rules` by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpu_windows import rules
from gpu_windows.kernels.compile import compile_rules, inner

COMPILED = compile_rules(inner(inline="always", error_model="numpy"), rules)
globals().update(COMPILED)

if TYPE_CHECKING:

    def __getattr__(rule: str) -> Any:
        """Return a compiled rule."""
