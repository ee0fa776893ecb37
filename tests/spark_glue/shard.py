"""A shard that a test drives micro-batch by micro-batch, and rows for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from uuid import uuid4

import pyarrow as pa

from gpu_windows.operators.base import Emission
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.memory_log import MemoryLog
from gpu_windows.planning.plan import Plan
from gpu_windows.spark_glue.tasks.shard_run import FinishedRun, ShardRun
from tests.operators.joins.interval_joins import batch_of
from tests.operators.joins.rows import Row
from tests.operators.state.put_away import rows

ROWS: list[tuple[bool, Row]] = [
    (True, ("a", 1, 1)),
    (False, ("a", 1, 2)),
    (True, ("b", 11, 3)),
    (False, ("b", 11, 4)),
    (False, ("c", 11, 5)),
]


class Shard:
    """A shard of a plan, from micro-batch to micro-batch.

    Parameters
    ----------
    planned : Plan
    log : StateLog, optional
        What it goes on from.
    """

    def __init__(self, planned: Plan, log: StateLog | None = None) -> None:
        self.planned = planned
        self.log = MemoryLog() if log is None else log
        self.finished: FinishedRun | None = None

    def emissions(
        self, tables: Iterable[pa.Table], watermark: int | None = None, *, now: int = 0
    ) -> Iterator[Emission]:
        """Yield what rows give, then a watermark; put the state away."""
        run = ShardRun(self.planned, self.log.reopen(), now)
        yield from run.emissions(tables, lambda: watermark)
        self.finished = run.finish(uuid4().hex)

    def micro_batch(self, watermark: int | None, *tables: pa.Table) -> int:
        """Run a micro-batch; return how many windows fired and rows met."""
        return sum(len(each.results) for each in self.emissions(tables, watermark))


def input_of(planned: Plan) -> pa.Table:
    joins = "is_left" in planned.query.schema.names
    return batch_of(ROWS, planned) if joins else rows(1, 2, 3, 11, 12)
