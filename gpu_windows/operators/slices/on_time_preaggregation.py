"""Partial aggregation before the shuffle of a stream, of rows that are certainly on time.

Flink calls it local aggregation. A million rows in 15 windows cross the shuffle as 250,000 partials
if they have 10,000 keys, as 1,500 if they have 100.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from gpu_windows.operators.device import Kernels, gather_batches
from gpu_windows.operators.slices.preaggregation import partial_schema, with_calls
from gpu_windows.operators.slices.table import SliceTable
from gpu_windows.planning.kinds.window_plan import WindowPlan

#: Partials replace rows if they have at most this share of the rows' bytes.
MAX_SHARE = 0.75
#: Metadata of tables of partials; tables of rows, which come the same way, have none.
_MARK = {b"gpu_windows": b"partials"}


class OnTimePreaggregation:
    """Aggregates the rows of a micro-batch that are on time by slice; the others stay rows.

    A row that is late, or has no usable timestamp, goes to the late output as it came, so it stays
    a row. A row on time for an upper bound of the watermark is on time for any earlier one, so an
    upper bound is safe. Whether partials replace the rows of a batch depends on that batch alone,
    so a micro-batch that is run again is cut in the same way.

    Parameters
    ----------
    plan : WindowPlan
        Of the slices strategy.
    watermark : int
        Upper bound of the operator's watermark when it processes the rows, in ticks.
    threads : int
        Threads of the CPU kernels.
    max_share : float
        Partials replace the rows of a batch if their bytes are at most this share of the rows'.
    """

    def __init__(
        self, plan: WindowPlan, watermark: int, *, threads: int = 1, max_share: float = MAX_SHARE
    ) -> None:
        self._plan = plan
        self._schema = partial_schema(plan).with_metadata(_MARK)
        self._watermark = watermark
        self._max_share = max_share
        self._kernels = Kernels(plan.query.options.device, threads)

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        """Yield tables of partials and tables of rows; `are_partials` tells them apart."""
        for rows in gather_batches(self._plan, batches):
            yield from self.split(rows)

    def split(self, rows: pa.Table) -> Iterator[pa.Table]:
        """Yield partials and the rows that stay rows, or all rows unchanged; nothing for none."""
        if len(rows) == 0:
            return
        table = SliceTable(self._plan, self._kernels)
        rejected = table.add_rows(rows, self._watermark)
        calls = self._kernels.take_counters()
        entries = table.entries()
        partials = table.to_arrow(entries).cast(self._schema)
        if len(entries) == 0 or partials.nbytes > self._max_share * rows.nbytes:
            yield rows
            return
        yield with_calls(partials, calls + self._kernels.take_counters())
        if len(rejected):
            yield rows.take(pa.array(rejected.positions))


def are_partials(table: pa.Table) -> bool:
    """Whether a table from `OnTimePreaggregation.run` holds partials, not rows."""
    return (table.schema.metadata or {}).items() >= _MARK.items()
