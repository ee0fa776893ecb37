"""What a shard measures: the bytes and entries that it holds, and where its time goes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_windows.operators.base import Emission, Operator
from gpu_windows.operators.slices.stored import SLICES
from gpu_windows.operators.state.buffer_spec import BufferSpec, KeyColumns, no_prefix
from gpu_windows.operators.state.files import MemoryFiles
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.memory_log import MemoryLog
from gpu_windows.operators.state.row_buffer import RowBuffer
from gpu_windows.operators.state.whole_table import WholeTable
from gpu_windows.planning.planner import plan
from gpu_windows.spark_glue.contract.meter import Measures, Meter
from gpu_windows.vocabulary.windows import TumblingEventTimeWindows
from tests.examples import examples
from tests.operators.state.counting import Counting
from tests.operators.state.put_away import rows
from tests.planning.queries import AGGREGATES, query
from tests.spark_glue.shard import Shard

NOTHING = Emission(pa.table({}), pa.table({}))


class Holding(Operator):
    """An operator that holds so many entries."""

    def __init__(self, entries: int) -> None:
        self.entries = entries

    def process(self, batch: pa.Table) -> Any: ...

    def advance_watermark(self, watermark: int) -> Any: ...

    def state_size(self) -> dict[str, int]:
        return {"windows": self.entries, "rows": 1, "timers": 5, "trigger_state": 7}


@examples(60)
@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 9), st.booleans()), max_size=8))
def test_state_is_what_is_there(calls: list[tuple[int, int, bool]]) -> None:
    """Calls append rows, hold entries, and may forget what was there."""
    log = Counting()
    for count, entries, forgets in calls:
        log.reopen()
        buffer = RowBuffer(log, "rows", BufferSpec("time", no_prefix))
        if forgets:
            buffer.forget(100)
        buffer.append(pa.table({"time": [*range(count)]}))
        measures = Meter(log).finish(Holding(entries), uuid4().hex)
        size = sum(run.size for run in log.runs("rows"))
        assert (measures.state_rows, measures.state_bytes) == (entries + 1, size)
        assert (size == 0) == (len(buffer) == 0)


def test_slices_are_not_read_to_be_counted() -> None:
    sums = {"sum_i": AGGREGATES["sum_i"]}
    planned = plan(query(TumblingEventTimeWindows(10), aggregates=sums), bounded=False)
    log = Counting()
    shard = Shard(planned, log)

    def micro_batch(watermark: int, *times: int) -> int:
        """Return how many ranges of slices are read."""
        log.reopen()
        log.forget_counts()
        shard.micro_batch(watermark, rows(*times).select(planned.input_columns))
        assert shard.finished is not None
        assert shard.finished.measures.state_bytes == log.live_size
        return log.table_ranges[SLICES]

    for _ in range(7):
        assert micro_batch(-1, 1, 12) == 0
    assert micro_batch(-1, 1, 12) == 7  # with the eighth they become one
    assert micro_batch(4, 3, 14) == 0
    assert micro_batch(9) > 0  # [0, 10) fires
    assert micro_batch(10, 15) == 0


def test_time_is_that_of_the_operator_or_of_files(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0]
    monkeypatch.setattr(time, "perf_counter_ns", lambda: now[0])

    def take(milliseconds: int) -> None:
        now[0] += milliseconds * 1_000_000

    class Slow(MemoryFiles):
        def read_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
            take(10)
            return super().read_ranges(name, ranges)

        def write(self, name: str, parts: Iterable[bytes]) -> None:
            take(100)
            super().write(name, parts)

    def emissions() -> Any:
        take(1)
        yield NOTHING
        take(2)
        yield NOTHING
        take(4)

    first = MemoryLog()
    WholeTable(first, "whole", KeyColumns.NONE).save(pa.table({"a": [1]}))
    first.reopen()
    assert isinstance(first.files, MemoryFiles)
    log = StateLog(Slow(first.files.files), first.newest)
    meter = Meter(log)
    table = WholeTable(log, "whole", KeyColumns.NONE)
    with meter.working():
        take(8)
        assert table.load() is not None
    emitted = []
    for emission in meter.measure(emissions()):
        emitted.append(emission)
        take(1_000)  # Spark's
    with meter.working():
        table.save(pa.table({"a": [2]}))
        take(16)
    measures = meter.finish(Holding(0), "file")
    assert len(emitted) == 2
    assert (measures.kernel_ms, measures.state_ms) == (1 + 2 + 4 + 8 + 16, 10 + 100)
    assert Measures.names()[:2] == ("kernel_ms", "state_ms")
