"""Columns of the next table go to a device while kernels work at this one.

The host copies them into pinned memory, and the device's copy engine takes them from there, while
kernels run and the operator's thread waits for numbers of groups. Kernels wait for a column when
they read it, not when its copy begins (`gpu_windows.kernels.cuda.staging.Upload`). So the way to
the device, which is the slowest part of a batch, is hardly ever idle. Kernels run in one thread all
the same: their order, and so each result, is that of tables which are moved when they are used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, pairwise

import pyarrow as pa

from gpu_windows.aggregates.partials import Lift
from gpu_windows.kernels.backend import Backend
from gpu_windows.operators.columns.device_table import (
    UploadedTable,
    is_folded_on_device,
    is_numeric,
)
from gpu_windows.operators.columns.numeric import TypedNumericColumn, in_pieces
from gpu_windows.operators.device import Kernels
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.plan import Plan, Strategy, is_plan_of


def upload_ahead(
    plan: Plan, tables: Iterable[pa.Table], *, wanted: Callable[[], bool] = lambda: True
) -> Iterator[UploadedTable | pa.Table]:
    """Yield tables whose columns go to the device one table ahead, in a thread of its own.

    So the source is read one table ahead, in the caller's thread. Tables that will not run on the
    device, or for whose columns it has no room, are yielded as they are. A table is used up when
    the next one is asked for: then its columns leave the device.

    Parameters
    ----------
    plan : Plan
        Whose kernels run on a device in this task.
    tables : iterable of pyarrow.Table
        What operators take.
    wanted : callable
        Whether kernels will still take columns from the device; asked for each table.

    Yields
    ------
    UploadedTable or pyarrow.Table
    """
    names = columns_of_kernels(plan)
    if not names:
        yield from tables
        return
    kernels = Kernels(plan.query.options.device)

    def upload(table: pa.Table) -> UploadedTable | pa.Table:
        if not wanted():
            return table
        uploaded = kernels.run_ahead(len(table), lambda backend: _upload(backend, table, names))
        return UploadedTable(table, uploaded) if uploaded else table

    with ThreadPoolExecutor(1, "upload") as thread:
        uploads = (thread.submit(upload, table) for table in tables)
        for this, _ in pairwise(chain(uploads, [None])):
            assert this is not None
            table = this.result()
            yield table
            if isinstance(table, UploadedTable):
                table.uploaded.clear()


def columns_of_kernels(plan: Plan) -> tuple[str, ...]:
    """Return the columns of rows that kernels of slices take from the device, each once."""
    if plan.strategy is not Strategy.SLICES or not is_plan_of(plan, WindowQuery):
        return ()
    query, schema = plan.query, plan.query.schema
    keys = [name for name in query.keys if is_numeric(schema.field(name).type)]
    folded = [each for each in plan.partials if is_folded_on_device(each, schema)]
    values = [each.column for each in folded if each.column and each.lift is not Lift.ONE]
    return tuple(dict.fromkeys((query.time, *keys, *values)))


def _upload(
    backend: Backend, table: pa.Table, names: tuple[str, ...]
) -> dict[str, TypedNumericColumn]:
    uploaded = {}
    for name in names:
        column = table.column(name)
        numeric = in_pieces(column)
        arrays = backend.upload(numeric.values), backend.upload(numeric.valid)
        uploaded[name] = TypedNumericColumn(*arrays, column.type)
    return uploaded
