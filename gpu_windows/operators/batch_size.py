"""Tables large enough for a call of an operator: larger if its kernels run on a device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from gpu_windows.kernels.backend import select
from gpu_windows.planning.plan import Plan, Strategy

#: Bytes of a table that are enough for a call, however few its rows are: on a CPU, on a device.
ENOUGH_BYTES, ENOUGH_DEVICE_BYTES = 1 << 27, 1 << 29
#: Rows of a slice of a table that is handed to an operator at once, at least.
_SLICE_ROWS = 1 << 20


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


def gather_batches(plan: Plan, rows: pa.Table | Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield the tables for the calls of an operator; see `gather`. Large tables are cut."""
    on_device = is_on_device(plan)
    count = plan.call_rows(on_device=on_device)
    if isinstance(rows, pa.Table):
        rows = rows.to_batches(max_chunksize=max(_SLICE_ROWS, count))
    # of slices only what kernels take is read, column by column, on its way to the device
    apart = on_device and plan.strategy is Strategy.SLICES
    enough = ENOUGH_DEVICE_BYTES if on_device else ENOUGH_BYTES
    return gather(rows, count, enough, in_pieces=apart)


def gather(
    batches: Iterable[pa.RecordBatch],
    rows: int,
    enough: int = ENOUGH_BYTES,
    *,
    in_pieces: bool = False,
) -> Iterator[pa.Table]:
    """Yield tables of at least ``rows`` rows (the last may be shorter), in order, none empty.

    A table of ``enough`` bytes may have fewer rows. Its columns are one chunk each, or with
    ``in_pieces`` a chunk for each batch, which are not copied here.
    """
    pending: list[pa.RecordBatch] = []
    count = size = 0
    for batch in batches:
        if batch.num_rows == 0:
            continue
        pending.append(batch)
        count += batch.num_rows
        size += batch.nbytes
        if count >= rows or size >= enough:
            yield _concat(pending, in_pieces=in_pieces)
            pending, count, size = [], 0, 0
    if pending:
        yield _concat(pending, in_pieces=in_pieces)


def _concat(batches: list[pa.RecordBatch], *, in_pieces: bool) -> pa.Table:
    first = batches[0].schema
    if all(batch.schema.equals(first) for batch in batches):
        table = pa.Table.from_batches(batches)
    else:  # batches of several starts of a query may differ in nullability
        tables = [pa.Table.from_batches([batch]) for batch in batches]
        table = pa.concat_tables(tables, promote_options="default")
    return table if in_pieces or len(batches) == 1 else table.combine_chunks()
