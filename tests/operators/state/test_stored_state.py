"""An operator that is put away in a store after every call gives what one does that is not."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

import gpu_windows as gw
from gpu_windows.errors import (
    InvalidFunctionError,
)
from gpu_windows.functions.process import Process
from gpu_windows.operators.base import Emission, Operator
from gpu_windows.operators.build import build_operator, restored_operator
from gpu_windows.operators.counters import Counters
from gpu_windows.operators.slices import stored
from gpu_windows.operators.slices.stored import StoredSlices
from gpu_windows.operators.slices.table import Entries
from gpu_windows.operators.state.store import MemoryStore
from gpu_windows.options import Options
from gpu_windows.planning.plan import Strategy
from gpu_windows.planning.planner import plan
from gpu_windows.query.base import Query
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.triggers import (
    ContinuousEventTimeTrigger,
    CountTrigger,
    EventTimeTrigger,
    Trigger,
)
from gpu_windows.windows import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from tests.datastream import custom_parts as custom
from tests.examples import examples
from tests.operators.panes.queries import inputs as machine_inputs
from tests.operators.panes.queries import queries
from tests.operators.slices.tasks import with_arrival
from tests.operators.state.put_away import Named, cut, put_away_after_each, rows
from tests.query.queries import SCHEMA, assigners, query, rows_of, tables

#: Rows, or a watermark.
Step = Any


@st.composite
def inputs(draw: st.DrawFn) -> list[Step]:
    """Rows in batches, watermarks between them, the end of the input."""
    table = with_arrival(draw(tables(exact=True)))
    cuts = sorted(draw(st.lists(st.integers(0, len(table)), max_size=6)))
    steps: list[Step] = []
    for begin, end in pairwise([0, *cuts, len(table)]):
        steps += [table.slice(begin, end - begin), draw(st.integers(-80, 80))]
    return [*steps, LONG_MAX]


def take(operator: Operator, step: Step) -> list[Emission]:
    return [
        *(operator.advance_watermark(step) if isinstance(step, int) else operator.process(step))
    ]


@examples(100)
@given(assigners(), inputs())
def test_slices(assigner: Any, steps: list[Step]) -> None:
    planned = plan(query(assigner), bounded=False)
    store, whole, now = MemoryStore(), build_operator(planned), LONG_MIN
    for step in steps:
        operator = restored_operator(planned, store)
        waits, _ = operator.next_timers()
        got, wanted = take(operator, step), take(whole, step)
        operator.save()
        for part in ("results", "late"):
            rows, others = (
                [r for e in es for r in rows_of(getattr(e, part))] for es in (got, wanted)
            )
            assert rows == others
        fired = sum((e.counters for e in got), Counters()).fired
        assert fired == sum((e.counters for e in wanted), Counters()).fired
        if isinstance(step, int):
            due = waits is not None and now < waits <= step
            assert due is (fired > 0)
            now = max(now, step)
    assert {kind for kind, _ in store.blobs} == {"head"}


@examples(150)
@given(queries(), machine_inputs())
def test_machines(made: Query, steps: list[Named]) -> None:
    planned = plan(made, bounded=False)
    if planned.strategy is not Strategy.BUFFER:
        reject()
    assert not any(put_away_after_each(planned, steps).values())


@examples(60)
@given(queries(), machine_inputs())
def test_machines_in_many_blocks(made: Query, steps: list[Named]) -> None:
    planned = plan(made, bounded=False)
    if planned.strategy is not Strategy.BUFFER:
        reject()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpu_windows.operators.state.runs._BLOCK_BYTES", 1)  # an entry a block
        patch.setattr("gpu_windows.operators.state.tiers.TOGETHER", 2)
        patch.setattr("gpu_windows.operators.state.timer_lists._BLOCK", 2)
        assert not any(put_away_after_each(planned, steps).values())


@examples(100)
@given(queries(), machine_inputs())
def test_the_reference(made: Query, steps: list[Named]) -> None:
    planned = plan(replace(made, options=Options(engine="reference")), bounded=False)
    assert not any(put_away_after_each(planned, steps).values())


@pytest.mark.parametrize("name", sorted(set(custom.QUERIES) - set(custom.COMPILED)))
def test_user_code(name: str) -> None:
    made = custom.outputs(custom.table(), name).plan.query
    assert not any(put_away_after_each(plan(made, bounded=False), cut(made)).values())


def test_state_of_a_key() -> None:
    """The state of a key has no end, as in Flink; that of a window ends with it."""
    output = pa.schema([("pause", pa.float64()), ("rows", pa.int64()), ("before", pa.int64())])
    process = custom.windowed(TumblingEventTimeWindows(60 * custom.SECOND)).outputs(
        Process(custom.Longest(), ("value", "ts"), output)
    )
    made = plan(process.plan.query, bounded=False)
    left = put_away_after_each(made, cut(made.query))
    assert not any(left.values())


def test_user_code_keeps_what_it_declared() -> None:
    class Wrong(custom.GeometricMean):
        accumulator = pa.struct([("product", pa.string()), ("count", pa.int64())])

    made = custom.windowed(TumblingEventTimeWindows(60 * custom.SECOND)).outputs(
        mean=gw.user_aggregate(Wrong(), "value")
    )
    planned = plan(made.plan.query, bounded=False)
    with pytest.raises(InvalidFunctionError, match="types that it declared"):
        put_away_after_each(planned, cut(planned.query))


class Watched(MemoryStore):
    """A store that notes what is read and written."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[tuple[str, str, int]] = set()

    def read(self, kind: str, bucket: int) -> bytes | None:
        self.seen.add(("read", kind, bucket))
        return super().read(kind, bucket)

    def write(self, kind: str, bucket: int, blob: bytes, *, held: int | None = None) -> None:
        self.seen.add(("write", kind, bucket))
        super().write(kind, bucket, blob, held=held)


def test_a_call_reads_and_writes_what_it_touches() -> None:
    planned = plan(query(TumblingEventTimeWindows(10)), bounded=False)
    store = Watched()

    def call(*steps: Step) -> set[tuple[str, str, int]]:
        store.seen.clear()
        operator = restored_operator(planned, store)
        for step in steps:
            take(operator, step)
        operator.save()
        return {each for each in store.seen if each[1] == "slices"}

    assert call(rows(1, 11, 21, 31)) == {("write", "slices", b) for b in range(4)}
    assert call(rows(22)) == {("read", "slices", 2), ("write", "slices", 2)}
    assert call(5) == set()
    assert call(9, rows(33)) == {("read", "slices", b) for b in (0, 3)} | {("write", "slices", 3)}
    assert sorted(store.blobs) == [("head", 0), *(("slices", b) for b in (1, 2, 3))]


def test_a_call_reads_and_writes_the_keys_that_it_touches() -> None:
    made = query(TumblingEventTimeWindows(10), trigger=CountTrigger(100), allowed_lateness=5)
    planned, store = plan(made, bounded=False), Watched()

    def call(*steps: Step) -> tuple[int, int]:
        """Return how many blocks of windows were read, and how many written."""
        store.seen.clear()
        operator = restored_operator(planned, store)
        for step in steps:
            take(operator, step)
        operator.save()
        found = [how for how, kind, _ in store.seen if kind == "windows"]
        return found.count("read"), found.count("write")

    keys = [f"k{i}" for i in range(40_000)]
    named = [{"key": key, "part": 1, "ts": 3, "i": 1} for key in keys]
    many = with_arrival(pa.Table.from_pylist(named, schema=SCHEMA))
    read, blocks = call(many)
    assert (read, blocks > 20) == (0, True)
    assert call(many.slice(0, 1)) == (1, 1)
    assert call(many.slice(7, 3)) == (4, 1)  # one of the call before, which had another key
    assert call(8) == (0, 0)
    assert call(rows(25)) == (3, 1)  # no run knows the key: a block of each
    read, written = call(14)
    assert (read >= blocks, written) == (True, 1)  # of the only window that is left


class Counted:
    """NumPy, for a module that is to count how many elements it hands over."""

    def __init__(self) -> None:
        self.elements = 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name)
        if isinstance(found, type) or not callable(found):
            return found

        def counted(*arguments: Any, **named: Any) -> Any:
            self.elements += sum(len(a) for a in arguments if isinstance(a, np.ndarray))
            return found(*arguments, **named)

        return counted


def test_a_call_looks_at_an_entry_as_often_however_many_buckets_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    planned = plan(query(TumblingEventTimeWindows(10)), bounded=False)

    def looked_at(buckets: int) -> int:
        """Return how many elements and entries are looked at while all buckets are written."""
        counted = Counted()

        def length(entries: Entries) -> int:
            counted.elements += 1
            return len(entries.codes)

        with monkeypatch.context() as patch:
            patch.setattr(stored, "np", counted)
            patch.setattr(Entries, "__len__", length)
            store = MemoryStore()
            for step in (rows(*range(0, 10 * buckets, 5)),) * 2:
                operator = restored_operator(planned, store)
                take(operator, step)
                operator.save()
            assert len(store.blobs) == buckets + 1
        return counted.elements

    assert looked_at(320) < 12 * looked_at(40)


@pytest.mark.parametrize("first", [-(2**40), 0])
def test_a_watermark_jumps_over_all_buckets(first: int) -> None:
    planned = plan(query(SlidingEventTimeWindows(30, 10)), bounded=False)
    store, whole = MemoryStore(), build_operator(planned)
    steps: list[Step] = [rows(*range(first, first + 900, 7)), first + 500, rows(first + 880)]
    for step in [*steps, steps[0], first - 5, LONG_MAX - 1, LONG_MAX]:
        operator = restored_operator(planned, store)
        got, wanted = take(operator, step), take(whole, step)
        operator.save()
        assert [r for e in got for r in rows_of(e.results)] == [
            r for e in wanted for r in rows_of(e.results)
        ]
    assert sorted(store.blobs) == [("head", 0)]


def test_an_operator_goes_on_after_it_was_saved() -> None:
    planned = plan(query(TumblingEventTimeWindows(10)), bounded=False)
    store, whole = MemoryStore(), build_operator(planned)
    operator = restored_operator(planned, store)
    for step in (rows(1, 11, 21), rows(2, 12), 9, rows(22, 31), rows(33), 25, LONG_MAX):
        got, wanted = take(operator, step), take(whole, step)
        operator.save()
        assert [rows_of(e.results) for e in got] == [rows_of(e.results) for e in wanted]
    assert sorted(store.blobs) == [("head", 0)]


def test_a_bucket_holds_some_slices_of_a_long_window() -> None:
    planned = plan(query(SlidingEventTimeWindows(60, 1)), bounded=False)
    store = MemoryStore()
    operator = restored_operator(planned, store)
    take(operator, rows(*range(140)))
    operator.save()
    assert StoredSlices.width_of(60) == 7
    assert sorted(store.blobs) == [("head", 0), *(("slices", b) for b in range(20))]


@pytest.mark.parametrize("trigger", [None, CountTrigger(7), ContinuousEventTimeTrigger(50)])
def test_an_open_session_does_not_grow_with_its_rows(trigger: Trigger | None) -> None:
    assigner = EventTimeSessionWindows(1_000)
    numbers = {"n": gw.count(), "mean": gw.mean("i"), "spread": gw.stddev("i"), "top": gw.max("i")}
    trigger = trigger or EventTimeTrigger()
    made = query(assigner, trigger=trigger, aggregates=numbers, allowed_lateness=5)
    planned, store, sizes = plan(made, bounded=False), MemoryStore(), []
    for number in range(24):
        operator = restored_operator(planned, store)
        take(operator, rows(*range(100 * number, 100 * number + 100)))
        take(operator, 100 * number)
        assert operator.state_size()["rows"] == 0
        operator.save()
        sizes.append(sum(map(len, store.blobs.values())))
    assert max(sizes[8:]) < max(sizes[:8]) + 100  # eight runs, then one
