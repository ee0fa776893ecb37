"""All shards of a query, and the driver that knows how far their inputs are: no Spark."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pyarrow as pa

from gpu_windows.operators.state.memory_log import MemoryLog
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.own_columns import REASON
from gpu_windows.planning.plan import Plan
from gpu_windows.planning.planner import plan
from gpu_windows.rules import LONG_MIN
from gpu_windows.spark_glue.contract.progress import (
    next_call_ms,
    read_combined_watermark,
    to_ticks,
    watermark_after,
)
from gpu_windows.spark_glue.contract.reported_watermarks import (
    ReportedWatermarks,
    holds_watermarks,
)
from gpu_windows.spark_glue.contract.watermarks import INPUT
from gpu_windows.spark_glue.tasks.fragments import join_fragments
from gpu_windows.spark_glue.tasks.micro_batch import PackMicroBatch
from gpu_windows.spark_glue.tasks.packing import from_ipc
from gpu_windows.spark_glue.tasks.shard_run import FinishedRun, ShardRun
from gpu_windows.spark_glue.tasks.workers import PackRows
from gpu_windows.vocabulary.watermarks import CombinedWatermark, WatermarkStrategy
from gpu_windows.vocabulary.windows import TumblingEventTimeWindows
from tests.planning.queries import AGGREGATES, SCHEMA, query

SUM = {"sum_i": AGGREGATES["sum_i"]}
#: Key, time in ticks, number, input.
Row = tuple[str, int, int, int]


def windows_of_ten(watermarks: WatermarkStrategy, shards: int = 3) -> WindowQuery:
    """Return sums of tumbling windows of ten milliseconds."""
    made = query(TumblingEventTimeWindows(10_000), aggregates=SUM, arrival_order=("i",))
    return replace(made, watermarks=watermarks, options=replace(made.options, shards=shards))


class Shards:
    """The shards of a streaming query, each with its log, and what is committed besides.

    Parameters
    ----------
    made : WindowQuery

    Attributes
    ----------
    combined : CombinedWatermark
        How far the inputs are.
    next_call_ms : int or None
        When a micro-batch comes though no rows do.
    called : bool
        Whether the last one came.
    """

    def __init__(self, made: WindowQuery) -> None:
        self.plan: Plan = plan(made, bounded=False, spark=True)
        self.logs = [MemoryLog() for _ in range(made.options.shards or 1)]
        self.combined = read_combined_watermark(made, {})
        self.next_call_ms: int | None = None
        self.reached: int | None = None
        self.called = False

    def copy(self) -> Shards:
        """Return the same, for a micro-batch that nobody commits."""
        other = Shards.__new__(Shards)
        other.__dict__ |= self.__dict__
        other.logs = [log.copy() for log in self.logs]
        return other

    def micro_batch(self, now: int, *tasks: list[Row]) -> tuple[list[Any], list[Any]]:
        """Return the results (key, start, sum) and the rows given back (key, time, reason).

        Nothing runs if there are no rows before `next_call_ms`.
        """
        self.called = bool(tasks) or (self.next_call_ms is not None and self.next_call_ms <= now)
        if not self.called:
            return [], []
        messages = self._packed(tasks)
        results: list[Any] = []
        late: list[Any] = []
        runs = [self._run(n, now, messages[n], results, late) for n in range(len(self.logs))]
        (self.combined,) = {combined for _, combined in runs}
        next_times = [finished.next_times for finished, _ in runs]
        self.next_call_ms = next_call_ms(self.plan.query, self.combined, next_times, now)
        self.reached = watermark_after(self.plan.query, self.combined, self.reached, now)
        return sorted(results), sorted(late)

    def _packed(self, tasks: tuple[list[Row], ...]) -> dict[int, list[pa.Buffer]]:
        messages: dict[int, list[pa.Buffer]] = defaultdict(list)
        inputs = len(self.plan.query.watermarks.inputs)
        under = LONG_MIN if self.reached is None else self.reached
        pack = PackMicroBatch(PackRows(self.plan), under)
        for task in tasks:
            named = [{"key": key, "part": 0, "ts": ts, "i": i} for key, ts, i, _ in task]
            table = pa.Table.from_pylist(named, SCHEMA).select(self.plan.input_columns)
            if inputs > 1:
                table = table.append_column(INPUT, pa.array([row[3] for row in task], pa.int32()))
            for batch in pack(table.to_batches()):
                for shard, message in join_fragments([batch]):
                    messages[shard].append(message)
        return messages

    def _run(
        self, number: int, now: int, messages: list[pa.Buffer], results: Any, late: Any
    ) -> tuple[FinishedRun, CombinedWatermark]:
        """Run a shard; return what it reports, and how far it knows the inputs to be."""
        query, reported = self.plan.query, ReportedWatermarks()

        def combine() -> CombinedWatermark:
            return self.combined.advance(now, reported.watermarks, query.watermarks.timeouts)

        def tables() -> Any:
            for message in messages:
                if holds_watermarks(message):
                    reported.add_bytes(message.to_pybytes())
                else:
                    yield from_ipc(message)

        def watermark() -> int | None:
            return watermark_after(query, combine(), self.reached, now)

        run = ShardRun(self.plan, self.logs[number], to_ticks(now))
        for emission in run.emissions(tables(), watermark):
            found = emission.results.to_pylist()
            results += [(row["key"], row["window_start"], row["sum_i"]) for row in found]
            late += [(row["key"], row["ts"], row[REASON]) for row in emission.late.to_pylist()]
        return run.finish(uuid4().hex), combine()

    @property
    def watermark(self) -> int | None:
        """That which the inputs allow."""
        return None if self.combined.watermark == LONG_MIN else self.combined.watermark
