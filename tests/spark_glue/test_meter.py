"""What a shard measures: the bytes and entries that it holds, and where its time goes."""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_windows.operators.base import Emission, Operator
from gpu_windows.operators.state.store import MemoryStore
from gpu_windows.planning.planner import plan
from gpu_windows.spark_glue.meter import Measures, Meter
from gpu_windows.windows import TumblingEventTimeWindows
from tests.examples import examples
from tests.operators.state.put_away import rows
from tests.query.queries import AGGREGATES, query
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


#: What a call does: writes so many bytes, or removes (None), or reads (-1), in buckets; and whether
#: it says what is there.
STEPS = st.tuples(
    st.integers(0, 3), st.one_of(st.none(), st.just(-1), st.integers(0, 500)), st.booleans()
)
CALLS = st.lists(st.tuples(st.lists(STEPS), st.integers(0, 9)), max_size=6)


@examples(200)
@given(CALLS)
def test_sums_are_those_of_what_is_there(
    calls: list[tuple[list[tuple[int, Any, bool]], int]],
) -> None:
    store = MemoryStore()
    before = (0, 0)
    for steps, entries in calls:
        meter = Meter(store)
        meter.begin()
        for bucket, length, tells in steps:
            there = store.blobs.get(("blob", bucket))
            told = len(there or b"") if tells else None
            if length is None:
                if there is not None:
                    meter.remove("blob", bucket, held=told)
            elif length < 0:
                assert meter.read("blob", bucket) == there
            else:
                meter.write("blob", bucket, b"x" * length, held=told)
        found = meter.finish(Holding(entries))
        held = sum(len(blob) for (kind, _), blob in store.blobs.items() if kind == "blob")
        assert (found.state_rows, found.state_bytes) == (entries + 1, held)
        change = (found.state_rows_change, found.state_bytes_change)
        assert change == (found.state_rows - before[0], found.state_bytes - before[1])
        before = (found.state_rows, found.state_bytes)


def test_what_is_told_is_not_read() -> None:
    reads = []

    class Noted(MemoryStore):
        def read(self, kind: str, bucket: int) -> bytes | None:
            reads.append((kind, bucket))
            return super().read(kind, bucket)

    store = Noted({("blob", 1): b"one", ("blob", 2): b"two"})
    meter = Meter(store)
    meter.write("blob", 0, b"none", held=0)
    meter.write("blob", 0, b"")  # known from the last time
    meter.write("blob", 1, b"longer", held=3)
    meter.remove("blob", 1)
    assert reads == []
    meter.remove("blob", 2)
    assert reads == [("blob", 2)]
    assert meter.finish(Holding(0)).state_bytes_change == -6


def test_slices_are_not_read_to_be_counted() -> None:
    sums = {"sum_i": AGGREGATES["sum_i"]}
    planned = plan(query(TumblingEventTimeWindows(10), aggregates=sums), bounded=False)
    seen: list[tuple[str, int]] = []

    class Noted(MemoryStore):
        def read(self, kind: str, bucket: int) -> bytes | None:
            seen.append((kind, bucket))
            return super().read(kind, bucket)

    store = Noted()
    shard = Shard(planned, store)

    def micro_batch(watermark: int, *times: int) -> list[int]:
        """Return which blobs of slices are read."""
        seen.clear()
        shard.micro_batch(watermark, rows(*times).select(planned.input_columns))
        assert shard.finished is not None
        held = sum(len(blob) for (kind, _), blob in store.blobs.items() if kind != "measures")
        assert shard.finished.measures.state_bytes == held
        return [bucket for kind, bucket in seen if kind == "slices"]

    for _ in range(7):
        assert micro_batch(-1, 1, 12) == []
    assert sorted(micro_batch(-1, 1, 12)) == [*range(14)]  # eight become one
    assert micro_batch(4, 3, 14) == []
    assert micro_batch(9) == [14, 16]  # [0, 10) fires
    assert micro_batch(10, 15) == []


def test_time_is_that_of_the_operator_or_of_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0]
    monkeypatch.setattr(time, "perf_counter_ns", lambda: now[0])

    def take(milliseconds: int) -> None:
        now[0] += milliseconds * 1_000_000

    class Slow(MemoryStore):
        def read(self, kind: str, bucket: int) -> bytes | None:
            take(10)
            return super().read(kind, bucket)

        def write(self, kind: str, bucket: int, blob: bytes, *, held: int | None = None) -> None:
            take(100)
            super().write(kind, bucket, blob, held=held)

    def emissions() -> Any:
        take(1)
        yield NOTHING
        take(2)
        yield NOTHING
        take(4)

    meter = Meter(Slow())
    meter.begin()  # reads
    with meter.working():
        take(8)
        meter.read("blob", 0)
    given_ = []
    for emission in meter.timed(emissions()):
        given_.append(emission)
        take(1_000)  # Spark's
    with meter.working():
        meter.write("blob", 0, b"")
        take(16)
    found = meter.finish(Holding(0))
    assert len(given_) == 2
    assert (found.kernel_ms, found.state_ms) == (1 + 2 + 4 + 8 + 16, 10 + 10 + 100)
    assert Measures.names()[:2] == ("kernel_ms", "state_ms")
