"""Work of a given size in each direction in which state grows, for the benchmark `growth`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa

import gpu_windows as gw
from benchmarks.data import SCHEMA, START
from gpu_windows.operators.build import restore_operator
from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.state.memory_log import MemoryLog
from gpu_windows.planning.plan import Plan
from gpu_windows.planning.planner import plan
from gpu_windows.rules import LONG_MAX
from gpu_windows.runners import local

MINUTE = 60_000_000
#: Rows of a batch in which keys come, and of a micro-batch of rows of a window.
_BATCH, _MICRO_BATCH = 1 << 15, 1_000

#: Makes work of a size: what it returns runs once.
Making = Callable[[int], Callable[[], object]]


@dataclass(frozen=True)
class Direction:
    """A direction in which state grows.

    Parameters
    ----------
    unit : str
        What there is more of.
    each : float
        How many units there are for each row of the largest size.
    make : callable
        Makes work with a number of units.
    """

    unit: str
    each: float
    make: Making


def rows(times: Any, keys: Any) -> pa.Table:
    """Return rows of `SCHEMA`, one for each time (ticks after `START`) and key."""
    values = np.arange(len(times)) % 997 * 0.5
    ts = pa.array(START + times, SCHEMA.field("ts").type)
    return pa.table([pa.array(keys), ts, values], schema=SCHEMA)


def windowed(table: pa.Table, assigner: gw.functions.WindowAssigner) -> Any:
    """Window rows by key, in one thread."""
    strategy = gw.WatermarkStrategy.for_bounded_out_of_orderness("5 seconds")
    keyed = gw.stream(table).event_time("ts", strategy).key_by("key")
    return keyed.window(assigner).options(threads=1, device="cpu")


def buckets(count: int) -> Callable[[], object]:
    """Put windows of a minute into a store, a row each; touch all of them; let them fire."""
    table = rows(np.arange(count) * MINUTE, np.zeros(count, np.int64))
    outputs = windowed(table, gw.TumblingEventTimeWindows.of(timedelta(minutes=1)))
    planned = plan(outputs.with_outputs().aggregate(sum=gw.sum("value")).plan.query, bounded=False)
    whole = in_ticks(table)

    def run() -> None:
        store = MemoryLog()
        for batch, watermark in ((whole, None), (whole, None), (whole.slice(0, 0), LONG_MAX)):
            micro_batch(planned, store, batch, watermark)

    return run


def shards(count: int) -> Callable[[], object]:
    """Pack four rows a shard, and unpack them."""
    from gpu_windows.spark_glue.tasks.packing import pack, unpack

    keys = np.arange(4 * count)
    table = rows(keys, keys)
    outputs = windowed(table, gw.TumblingEventTimeWindows.of(timedelta(minutes=1)))
    query = outputs.options(shards=count).with_outputs().aggregate(sum=gw.sum("value")).plan.query
    planned = plan(query, bounded=False)
    return lambda: list(unpack(pack(planned, [table]), 1 << 20))


def strings(count: int) -> Callable[[], object]:
    """Encode distinct strings, batch by batch."""
    numbers = np.random.default_rng(7).permutation(count)
    column = pa.array([f"sensor-{number:07}" for number in numbers])
    batches = [column.slice(begin, _BATCH) for begin in range(0, count, _BATCH)]

    def run() -> None:
        encoder = KeyEncoder([column.type])
        for batch in batches:
            encoder.encode([batch])

    return run


def rows_of_a_key(count: int) -> Callable[[], object]:
    """Collect the rows of one key, in windows of an hour; the more rows, the more windows."""
    table = rows(np.arange(count) * MINUTE // 10, np.zeros(count, np.int64))
    outputs = windowed(table, gw.TumblingEventTimeWindows.of(timedelta(hours=1)))
    planned = outputs.with_outputs().aggregate(values=gw.collect_list("value")).plan
    return lambda: local.run(planned, table)


def rows_of_a_window(count: int) -> Callable[[], object]:
    """Put rows of one window into a store, a thousand more in each micro-batch."""
    table = rows(np.arange(count), np.zeros(count, np.int64))
    outputs = windowed(table, gw.TumblingEventTimeWindows.of(timedelta(hours=1)))
    outputs = outputs.with_outputs().aggregate(values=gw.collect_list("value"))
    planned, whole = plan(outputs.plan.query, bounded=False), in_ticks(table)

    def run() -> None:
        store = MemoryLog()
        for begin in range(0, count, _MICRO_BATCH):
            micro_batch(planned, store, whole.slice(begin, _MICRO_BATCH))

    return run


#: Name to direction.
DIRECTIONS: Mapping[str, Direction] = {
    "buckets": Direction("buckets of slices in a store", 0.1, buckets),
    "shards": Direction("shards of packed rows", 0.25, shards),
    "strings": Direction("distinct strings", 6, strings),
    "rows": Direction("rows of a key, collected", 1, rows_of_a_key),
    "window": Direction("rows of a window in a store", 0.5, rows_of_a_window),
}


def in_ticks(table: pa.Table) -> pa.Table:
    """Return rows as operators take them."""
    return table.set_column(1, "ts", table["ts"].cast(pa.int64()))


def micro_batch(
    planned: Plan, store: MemoryLog, batch: pa.Table, watermark: int | None = None
) -> None:
    """Do what a shard does in a micro-batch: rows, then the watermark, then the state."""
    operator = restore_operator(planned, store)
    drain(operator.process(batch))
    if watermark is not None:
        drain(operator.advance_watermark(watermark))
    operator.save()


def drain(emissions: Iterator[object]) -> None:
    """Have all results made."""
    for _ in emissions:
        pass
