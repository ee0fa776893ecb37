"""What a compiled kernel takes."""

from __future__ import annotations

from dataclasses import dataclass

from tests.kernels.sass import Instructions


@dataclass(frozen=True)
class Usage:
    """What one kernel takes on one architecture.

    Parameters
    ----------
    kernel : str
        Module and name.
    lane : str
        "int64" or "float64", where a kernel is compiled for both; else empty.
    arch : str
        Such as "sm_90".
    registers : int
        A thread.
    stack, spill_stores, spill_loads : int
        Bytes a thread.
    instructions : Instructions, optional
        Machine instructions; None where they were not counted.
    seconds : float
        Processor time to PTX: that of Numba and NVVM on the first architecture, that of NVVM alone
        on the others.
    """

    kernel: str
    lane: str
    arch: str
    registers: int
    stack: int
    spill_stores: int
    spill_loads: int
    instructions: Instructions | None
    seconds: float
