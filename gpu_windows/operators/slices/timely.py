"""Partial aggregation before a shuffle on streams: of rows that are in time for sure.

Of a million rows in 15 windows, 250,000 partials cross if there are 10,000 keys, 1,500 if 100.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from gpu_windows.operators.calls import gather_calls
from gpu_windows.operators.device import Kernels
from gpu_windows.operators.slices.partial_stage import partial_schema, with_calls
from gpu_windows.operators.slices.table import SliceTable
from gpu_windows.planning.kinds.window_plan import WindowPlan

#: Partials take the place of rows if they have at most this share of their bytes.
WORTH = 0.75
#: Metadata of tables of partials; tables of rows, which come the same way, have none.
_MARK = {b"gpu_windows": b"partials"}


class TimelyStage:
    """Turns rows of a micro-batch that are in time into partials of slices; others stay rows.

    A row that is late, or without a usable timestamp, must be given back whole, so it stays one. Of
    rows that no later watermark than the given one judges none is late that is in time here: so an
    upper bound of the watermark will do. Each batch is judged by itself, by what it is made of: a
    micro-batch that is run again is cut in the same way.

    Parameters
    ----------
    plan : WindowPlan
        Of the slices strategy.
    watermark : int
        The latest watermark, in ticks, that an operator may have when it takes the rows.
    threads : int
        Threads of the CPU kernels.
    worth : float
        The share of the bytes of a batch's rows that its partials may have to be sent in their
        place.
    """

    def __init__(
        self, plan: WindowPlan, watermark: int, *, threads: int = 1, worth: float = WORTH
    ) -> None:
        self._plan = plan
        self._schema = partial_schema(plan).with_metadata(_MARK)
        self._watermark = watermark
        self._worth = worth
        self._kernels = Kernels(plan.query.options.device, threads)

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        """Yield tables of partials, which `are_partials`, and of rows."""
        for rows in gather_calls(self._plan, batches):
            yield from self.split(rows)

    def split(self, rows: pa.Table) -> Iterator[pa.Table]:
        """Yield partials and the rows that stay, or the rows as they are; nothing for no rows."""
        if len(rows) == 0:
            return
        table = SliceTable(self._plan, self._kernels)
        rejected = table.add_rows(rows, self._watermark)
        calls = self._kernels.counted()
        entries = table.entries()
        partials = table.to_arrow(entries).cast(self._schema)
        if len(entries) == 0 or partials.nbytes > self._worth * rows.nbytes:
            yield rows
            return
        yield with_calls(partials, calls + self._kernels.counted())
        if len(rejected):
            yield rows.take(pa.array(rejected.places))


def are_partials(table: pa.Table) -> bool:
    """Whether a table that was sent holds partials, not rows."""
    return (table.schema.metadata or {}).items() >= _MARK.items()
