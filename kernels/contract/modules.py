"""The modules of a back end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

from gpu_windows.kernels.contract.groups import G, Grouping, Reduce
from gpu_windows.kernels.contract.joins import Joins
from gpu_windows.kernels.contract.keys import Keys
from gpu_windows.kernels.contract.rows import Assign
from gpu_windows.kernels.contract.windows import Combine


@dataclass(frozen=True)
class Modules(Generic[G]):
    """The modules of a back end."""

    keys: Keys
    assign: Assign
    grouping: Grouping[G]
    reduce: Reduce[G]
    combine: Combine
    joins: Joins
