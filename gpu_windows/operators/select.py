"""The operator of selections: a result for each row, and no state."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from gpu_windows.operators.base import Emission, Operator
from gpu_windows.operators.counters import Counters
from gpu_windows.operators.results import add_trace
from gpu_windows.planning.kinds.select import SelectPlan


class SelectOperator(Operator):
    """Emits the selected columns of every row, in order of arrival.

    Parameters
    ----------
    plan : SelectPlan
    trace : bool
        Whether results carry `gpu_windows.operators.results.TRACE`.
    """

    def __init__(self, plan: SelectPlan, *, trace: bool = False) -> None:
        self._plan, self._trace = plan, trace

    def process(self, batch: pa.Table) -> Iterator[Emission]:
        """Emit the rows of a batch."""
        if len(batch) == 0:
            return
        schema, columns = self._plan.result_schema, self._plan.query.columns
        arrays = [
            batch.column(column).cast(schema.field(name).type) for name, column in columns.items()
        ]
        results = pa.Table.from_arrays(arrays, schema=schema)
        if self._trace:
            results = add_trace(results, "element")
        counters = Counters(rows=len(batch), fired=len(batch))
        yield Emission(results, pa.table({}), counters)

    def advance_watermark(self, watermark: int) -> Iterator[Emission]:
        """Do nothing: rows do not wait for the watermark."""
        del watermark
        yield from ()
