"""Flink's rules, compiled by ``numba.cuda`` and inlined into kernels, each by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpu_windows import rules
from gpu_windows.kernels.compile import compile_rules
from gpu_windows.kernels.cuda.compiler import device_function

COMPILED = compile_rules(device_function, rules)
globals().update(COMPILED)

if TYPE_CHECKING:

    def __getattr__(rule: str) -> Any:
        """Return a compiled rule."""
