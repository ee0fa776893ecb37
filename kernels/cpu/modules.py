"""The modules of the CPU back end; here mypy checks that each keeps its contract."""

from __future__ import annotations

from gpu_windows.kernels.backend import Backend
from gpu_windows.kernels.contract.modules import Modules
from gpu_windows.kernels.cpu import (
    assign,
    combine,
    grouping,
    joins,
    keys,
    reduce,
)

#: Its memory is the host's.
BACKEND = Backend

MODULES = Modules(
    keys,
    assign,
    grouping,
    reduce,
    combine,
    joins,
)
