"""The modules of the CPU back end; here mypy checks that each keeps its contract."""

from __future__ import annotations

from gpu_windows.kernels.contract.modules import Modules
from gpu_windows.kernels.cpu import (
    assign,
    combine,
    grouping,
    joins,
    keys,
    memory,
    reduce,
)

MODULES = Modules(
    keys,
    assign,
    grouping,
    reduce,
    combine,
    joins,
    memory,
)
