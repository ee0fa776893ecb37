"""All shards of a query, called as Spark calls them: for rows, for marks, and for their timers."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

import pyarrow as pa

from gpu_windows.operators.state.store import MemoryStore
from gpu_windows.planning.plan import Plan
from gpu_windows.planning.planner import plan
from gpu_windows.query.base import REASON
from gpu_windows.query.window import WindowQuery
from gpu_windows.rules import LONG_MIN
from gpu_windows.spark_glue.marks import INPUT
from gpu_windows.spark_glue.micro_batch import Shard
from gpu_windows.spark_glue.own_watermark import KIND, from_table
from gpu_windows.spark_glue.times import SparkClock
from gpu_windows.spark_glue.workers import PackRows
from gpu_windows.watermarks import Valve, WatermarkStrategy
from gpu_windows.windows import TumblingEventTimeWindows
from tests.query.queries import AGGREGATES, SCHEMA, query

#: A millisecond is a tick here.
CLOCK = SparkClock(1)
SUM = {"sum_i": AGGREGATES["sum_i"]}
#: Key, time, number, input.
Row = tuple[str, int, int, int]


def windows_of_ten(watermarks: WatermarkStrategy, shards: int = 3) -> WindowQuery:
    """Return sums of tumbling windows of ten ticks."""
    made = query(TumblingEventTimeWindows(10), aggregates=SUM, order_by=("i",))
    return replace(made, watermarks=watermarks, options=replace(made.options, shards=shards))


class Shards:
    """The shards of a streaming query, each with its store and its timer."""

    def __init__(self, made: WindowQuery) -> None:
        self.plan: Plan = plan(made, bounded=False, spark=True)
        self.shard = Shard(self.plan, CLOCK)
        count = made.options.shards or 1
        self.stores = [MemoryStore() for _ in range(count)]
        self.timers: list[int | None] = [None] * count
        self.called: list[int] = []

    def copy(self) -> Shards:
        """Return the same, for a micro-batch that nobody commits."""
        other = Shards.__new__(Shards)
        other.plan, other.shard = self.plan, self.shard
        other.stores = [MemoryStore(dict(store.blobs)) for store in self.stores]
        other.timers, other.called = [*self.timers], []
        return other

    def micro_batch(self, now: int, *tasks: list[Row]) -> tuple[list[Any], list[Any]]:
        """Return the results (key, start, sum) and the rows given back (key, time, reason)."""
        blobs = self._packed(tasks)
        results: list[Any] = []
        late: list[Any] = []
        self.called = []
        for number, timer in enumerate(self.timers):
            is_due = timer is not None and timer <= now
            if number in blobs:
                self._call(number, now, blobs[number], results, late, silent=False)
            if is_due:  # Spark calls for timers afterwards
                self._call(number, now, [], results, late, silent=True)
        return sorted(results), sorted(late)

    def _packed(self, tasks: tuple[list[Row], ...]) -> dict[int, list[bytes]]:
        blobs: dict[int, list[bytes]] = defaultdict(list)
        inputs = len(self.plan.query.watermarks.inputs)
        for task in tasks:
            named = [{"key": key, "part": 0, "ts": ts, "i": i} for key, ts, i, _ in task]
            table = pa.Table.from_pylist(named, SCHEMA).select(self.plan.input_columns)
            if inputs > 1:
                table = table.append_column(INPUT, pa.array([row[3] for row in task], pa.int32()))
            for batch in PackRows(self.plan)(table.to_batches()):
                for shard, blob in zip(*(column.to_pylist() for column in batch), strict=True):
                    blobs[shard].append(blob)
        return blobs

    def _call(
        self, number: int, now: int, blobs: list[bytes], results: Any, late: Any, *, silent: bool
    ) -> None:
        self.called.append(number)
        batch = self.shard.begin(self.stores[number], now, 0, silent=silent)
        for emission in batch.emissions(batch.unmarked(blobs)):
            found = emission.results.to_pylist()
            results += [(row["key"], row["window_start"], row["sum_i"]) for row in found]
            late += [(row["key"], row["ts"], row[REASON]) for row in emission.late.to_pylist()]
        self.timers[number] = batch.finish().next_call

    @property
    def valves(self) -> list[Valve]:
        """What each shard knows of the inputs."""
        found = [store.load(KIND, 0) for store in self.stores]
        return [from_table(table) for table in found if table is not None]

    @property
    def watermark(self) -> int | None:
        """That of the next micro-batch: the same in all shards."""
        (watermark,) = {valve.watermark for valve in self.valves}
        return None if watermark == LONG_MIN else watermark
