"""How many rows and bytes go into one call of an operator: more if its kernels run on a device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from gpu_windows.kernels.backend import select
from gpu_windows.operators.columns.batches import ENOUGH_BYTES, gather
from gpu_windows.planning.plan import Plan, Strategy

#: Bytes of a table that are enough for a call on a device, however few its rows are.
ENOUGH_DEVICE_BYTES = 1 << 29


def is_on_device(plan: Plan) -> bool:
    """Whether the kernels of a plan run on a device in this task.

    Raises
    ------
    DeviceUnavailableError
        If the query asks for "cuda" where it cannot be used.
    """
    return plan.calls_kernels and select(plan.query.options.device).name != "cpu"


def rows_per_call(plan: Plan) -> int:
    """Return the number of rows that are gathered for one call in this task."""
    return plan.call_rows(on_device=is_on_device(plan))


def gather_batches(plan: Plan, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield the tables for the calls of an operator; see `gather`."""
    on_device = is_on_device(plan)
    enough = ENOUGH_DEVICE_BYTES if on_device else ENOUGH_BYTES
    # of slices only what kernels take is read, column by column, on its way to the device
    apart = on_device and plan.strategy is Strategy.SLICES
    return gather(batches, plan.call_rows(on_device=on_device), enough, in_pieces=apart)
