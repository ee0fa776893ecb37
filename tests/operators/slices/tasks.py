"""Rows through partial stages and a last one, as Spark's tasks would take them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from gpu_windows.operators.build import build_operator
from gpu_windows.operators.counters import Counters
from gpu_windows.operators.slices.firing import FiringOperator
from gpu_windows.operators.slices.preaggregation import Preaggregation, split_counts
from gpu_windows.planning.kinds.window_plan import WindowPlan
from gpu_windows.planning.plan import ARRIVAL
from gpu_windows.rules import LONG_MAX


def with_arrival(table: pa.Table) -> pa.Table:
    """Return the rows with their number, as runners give it to them."""
    return table.append_column(ARRIVAL, pa.array(np.arange(len(table))))


def parts_of(data: st.DataObject, table: pa.Table) -> list[pa.Table]:
    """Draw a task for every row; return the rows of each task."""
    tasks = data.draw(st.integers(1, 4))
    task_of = np.array([data.draw(st.integers(0, tasks - 1)) for _ in range(len(table))], int)
    return [table.filter(pa.array(task_of == task)) for task in range(tasks)]


def through_tasks(planned: WindowPlan, parts: Iterable[pa.Table]) -> tuple[pa.Table, Counters]:
    """Make partials of the rows of every task, merge and fire them; nothing may be left."""
    final = build_operator(planned, in_order=False, device="cpu")
    assert isinstance(final, FiringOperator)
    counters = Counters()
    for part in parts:
        for partials in Preaggregation(planned).run(part.to_batches()):
            used, counted = split_counts(planned, partials)
            counters += counted
            final.merge(used)
    emitted = [emission.results for emission in final.advance_watermark(LONG_MAX)]
    results = pa.concat_tables([planned.result_schema.empty_table(), *emitted])
    assert not any(final.state_size().values())
    return results, counters + Counters(fired=len(results))
