"""The state machine of a window: Flink's WindowOperator as scalar functions.

Each function is written once and runs under CPython and ``numba.njit``; CUDA kernels do not call
them (docs/strategies.md). A *pane* is a key and a window; everything that it keeps is a number in
an array (`layout`), so that a kernel can run millions of them. A trigger is a *program*: its tree
of triggers as numbers.
"""

from __future__ import annotations

from gpu_windows.rules.window_operator import contents, merging, panes, triggers

#: The modules whose functions kernels compile.
COMPILED = (triggers, contents, panes, merging)
