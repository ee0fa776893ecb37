"""The modules of the CUDA back end; here mypy checks that each keeps its contract."""

from __future__ import annotations

from gpu_windows.kernels.contract.modules import Modules
from gpu_windows.kernels.cuda import (
    assign,
    combine,
    grouping,
    joins,
    keys,
    reduce,
)
from gpu_windows.kernels.cuda.memory import CudaBackend

BACKEND = CudaBackend

MODULES = Modules(
    keys,
    assign,
    grouping,
    reduce,
    combine,
    joins,
)
