"""Count windows that the buffer strategy has stored, for the counts strategy to go on from.

Versions before streams had that strategy stored them so: a global window of each key, with the rows
that it kept or partials of them, how many came since it last fired, and how often it has.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from gpu_windows.operators.columns.lanes import to_lane
from gpu_windows.operators.device import Kernels
from gpu_windows.operators.panes.operator import BufferOperator
from gpu_windows.operators.panes.tables import counted_rows, key_columns, rows_of_windows
from gpu_windows.operators.slices.count_table import CountTable
from gpu_windows.operators.slices.table import grid_of
from gpu_windows.operators.state.store import Store
from gpu_windows.planning.plan import ARRIVAL, SLICE, Strategy, WindowPlan
from gpu_windows.rules import LONG_MIN


def move_counts(plan: WindowPlan, kernels: Kernels, store: Store, table: CountTable) -> int:
    """Move what a store holds of count windows to a table; return how many rows had come."""
    buffer = BufferOperator(replace(plan, strategy=Strategy.BUFFER, grid=None), kernels)
    buffer.restore(store)
    windows, rows, seen = buffer.taken_out()
    if len(windows) == 0:
        return seen
    slide, (fired, since, held) = grid_of(plan).slide, counted_rows(windows)
    counts, keys = slide * fired + since, key_columns(windows)
    if plan.query.keeps_rows:
        table.recall(keys, counts - held, np.zeros_like(held), None)
        kept = rows_of_windows(windows, rows, plan.query)
        order = np.argsort(to_lane(kept.column(ARRIVAL)).values, kind="stable")
        table.add_rows(kept.take(pa.array(order)), LONG_MIN)
        table.filled = []  # they have fired
        return seen
    some = since > 0
    slices = windows.filter(pa.array(some)).append_column(SLICE, pa.array(fired[some]))
    table.recall(keys, counts, some.astype(np.int64), slices)
    return seen
