"""What a compiled kernel takes."""

from __future__ import annotations

from dataclasses import dataclass


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
    instructions, loop : int
        Machine instructions, of all and of the largest loop; see `tests.kernels.sass.Instructions`.
    seconds : float
        Processor time that Numba and NVVM took to PTX.
    """

    kernel: str
    lane: str
    arch: str
    registers: int
    stack: int
    spill_stores: int
    spill_loads: int
    instructions: int
    loop: int
    seconds: float
