"""Slices in a store: what a call appends, and what is read when."""

from __future__ import annotations

from functools import reduce
from operator import add
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_windows.operators.build import build_operator, restored_operator
from gpu_windows.operators.counters import Counters
from gpu_windows.operators.slices import blobs
from gpu_windows.operators.slices.stored import StoredSlices
from gpu_windows.operators.state import store as stores
from gpu_windows.operators.state.store import MemoryStore, from_blob
from gpu_windows.planning.plan import WindowPlan
from gpu_windows.planning.planner import plan
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.windows import (
    CumulativeEventTimeWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from tests.examples import examples
from tests.operators.state.noted import Noted, merged_early
from tests.operators.state.put_away import Step, call, rows, take
from tests.operators.state.sliced import inputs, many_slices
from tests.operators.state.version_2 import as_version_2, blob_of
from tests.query.queries import AGGREGATES, assigners, query, rows_of

#: The other columns of a row, for windows that sum floats.
FLOATS = {"key": ["a"], "part": pa.array([1], pa.int32()), "ts": [3]}


# ---- nothing that is given differs


@pytest.mark.parametrize("alike", [2, 8])
@examples(60)
@given(st.one_of(assigners(), many_slices()), inputs())
def test_slices(alike: int, assigner: Any, steps: list[Step]) -> None:
    planned = plan(query(assigner), bounded=False)
    store, whole, now = Noted(), build_operator(planned), LONG_MIN
    with merged_early(alike):
        for step in steps:
            store.forget()
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
            assert fired > 0 or store.was_read <= store.removed
            if isinstance(step, int):
                due = waits is not None and now < waits <= step
                assert due is (fired > 0)
                now = max(now, step)
    assert {kind for kind, _ in store.blobs} == {"head"}


@examples(60)
@given(st.one_of(assigners(), many_slices()), inputs(exact=False), st.randoms())
def test_a_restart_changes_no_bit(assigner: Any, steps: list[Step], random: Random) -> None:
    planned = plan(query(assigner), bounded=False)
    found = []
    with merged_early():
        for may_go_on in (False, True):
            store, operator, given_ = MemoryStore(), None, []
            for step in steps:
                if operator is None or not may_go_on or random.random() < 0.5:
                    operator = restored_operator(planned, store)
                given_ += [row for e in take(operator, step) for row in e.results.to_pylist()]
                operator.save()
            found.append(sorted(map(repr, given_)))  # a float is shown with all its digits
    assert found[0] == found[1]


def test_what_came_first_is_added_first() -> None:
    """Sums of floats tell the order: 1 is lost beside 1e16."""
    made = query(TumblingEventTimeWindows(10), aggregates={"sum_f": AGGREGATES["sum_f"]})
    planned, store = plan(made, bounded=False), Noted()
    values = [1e16, 1.0, -1e16, 1.0, 1e16, 3.0, -1e16, 2.0, 1e16, 1.0, -1e16, 5.0]
    for value in values:
        call(planned, store, pa.table({**FLOATS, "f": [value]}))
    assert store.numbers == [7, 8, 9, 10, 11]  # the first eight are one
    ((*_, found),) = call(planned, store, LONG_MAX)
    assert found == reduce(add, values) != reduce(add, values[::-1])


@pytest.mark.parametrize("first", [-(2**40), 0])
def test_a_watermark_jumps_over_all_buckets(first: int) -> None:
    planned = plan(query(SlidingEventTimeWindows(30, 10)), bounded=False)
    store, whole = MemoryStore(), build_operator(planned)
    steps: list[Step] = [rows(*range(first, first + 900, 7)), first + 500, rows(first + 880)]
    for step in [*steps, steps[0], first - 5, LONG_MAX - 1, LONG_MAX]:
        wanted = [row for e in take(whole, step) for row in rows_of(e.results)]
        assert call(planned, store, step) == wanted
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


def test_a_call_may_advance_several_times() -> None:
    planned = plan(query(SlidingEventTimeWindows(40, 1)), bounded=False)
    steps: list[Step] = [rows(1, 30), 20, rows(22, 40), 21, 35, rows(36), rows(37), 70]
    whole = build_operator(planned)
    wanted = [row for step in steps for e in take(whole, step) for row in rows_of(e.results)]
    assert call(planned, MemoryStore(), *steps) == wanted


# ---- what a call reads and writes


def test_a_call_reads_what_fires_and_appends_what_comes() -> None:
    planned, store = plan(query(TumblingEventTimeWindows(10)), bounded=False), Noted()

    def seen(*steps: Step) -> tuple[set[int], set[int], set[int]]:
        store.forget()
        call(planned, store, *steps)
        return store.was_read, set(store.written), store.removed

    nothing: set[int] = set()
    assert seen(rows(1, 11, 21, 31)) == (nothing, {0, 1, 2, 3}, nothing)
    assert seen(rows(22)) == (nothing, {4}, nothing)
    assert seen(5) == (nothing, nothing, nothing)
    assert seen(9, rows(33)) == ({0}, {5}, {0})
    assert store.numbers == [1, 2, 3, 4, 5]
    assert seen(29) == ({1, 2, 4}, nothing, {1, 2, 4})
    assert seen(rows(40, 32)) == (nothing, {6, 7}, nothing)
    assert seen(LONG_MAX) == ({3, 5, 6, 7}, nothing, {3, 5, 6, 7})


def test_a_bucket_holds_some_slices_of_a_long_window() -> None:
    planned = plan(query(SlidingEventTimeWindows(60, 1)), bounded=False)
    store = MemoryStore()
    call(planned, store, rows(*range(140)))
    assert StoredSlices.width_of(60) == 7
    assert sorted(store.blobs) == [("head", 0), *(("slices", b) for b in range(20))]


def test_slices_that_are_over_wait_for_their_bucket() -> None:
    """Nothing is written for them, and no timer waits for what is not there."""
    planned, store = plan(query(SlidingEventTimeWindows(60, 1)), bounded=False), Noted()
    call(planned, store, rows(0, 1, 5))
    call(planned, store, rows(1, 9))

    def held(watermark: int) -> tuple[list[int], int, int | None]:
        store.forget()
        call(planned, store, watermark)
        assert not store.written
        operator = restored_operator(planned, store)
        return store.numbers, operator.state_size()["entries"], operator.next_timers()[0]

    assert held(58) == ([0, 1, 2], 5, 59)
    assert held(60) == ([0, 1, 2], 5, 61)  # slices 0 and 1 are over
    assert held(63) == ([0, 1, 2], 5, 64)
    assert held(64) == ([2], 1, 65)  # slice 5 too, and so is bucket 0
    assert held(68) == ([], 0, None)


def test_the_dead_set_no_timer() -> None:
    """The window of the only slice that is alive comes later than those of slices that are over."""
    cumulative = CumulativeEventTimeWindows(32, 1)
    planned, store = plan(query(cumulative), bounded=False), MemoryStore()
    call(planned, store, rows(31))  # buckets have four slices
    call(planned, store, rows(35), 34)
    assert restored_operator(planned, store).next_timers() == (35, None)
    sliding = plan(query(SlidingEventTimeWindows(17, 1)), bounded=False)
    store = MemoryStore()
    call(sliding, store, rows(0, 1))
    call(sliding, store, rows(40))
    call(sliding, store, 16)
    assert restored_operator(sliding, store).next_timers() == (17, None)
    call(sliding, store, 17)
    assert restored_operator(sliding, store).next_timers() == (40, None)


# ---- what version 2 of the format has stored


@examples(60)
@given(st.one_of(assigners(), many_slices()), inputs(), st.integers(0, 12))
def test_what_version_2_stored_goes_on(assigner: Any, steps: list[Step], after: int) -> None:
    planned = plan(query(assigner), bounded=False)
    assert isinstance(planned, WindowPlan)
    store, whole = MemoryStore(), MemoryStore()
    with merged_early():
        for number, step in enumerate(steps):
            if number == after:
                store = as_version_2(planned, store)
                opened = restored_operator(planned, store)
                assert opened.next_timers() == restored_operator(planned, whole).next_timers()
            assert call(planned, store, step) == call(planned, whole, step)
    assert sorted(store.blobs) == [("head", 0)]


def test_numbers_are_none_that_version_2_has_used() -> None:
    planned = plan(query(TumblingEventTimeWindows(10)), bounded=False)
    assert isinstance(planned, WindowPlan)
    for first, number in ((-35, 0), (70, 10), (-15, 1)):
        store = MemoryStore()
        call(planned, store, rows(first, first + 10, first + 20))
        store = as_version_2(planned, store)
        buckets = {(first + ts) // 10 for ts in (0, 10, 20)}
        assert {bucket for kind, bucket in store.blobs if kind == "slices"} == buckets
        call(planned, store, rows(first, first + 21))
        assert {bucket for kind, bucket in store.blobs if kind == "slices"} == {
            *buckets, number, number + 1,
        }  # fmt: skip
        (head,) = (
            from_blob(blob, "head") for (kind, _), blob in store.blobs.items() if kind == "head"
        )
        sizes = dict(zip(head["number"].to_pylist(), head["size"].to_pylist(), strict=True))
        assert {bucket for bucket, size in sizes.items() if size == blobs.UNKNOWN} == buckets


def test_versions() -> None:
    assert stores.VERSION == stores.READ_VERSIONS[-1] == 4
    table = pa.table({"a": [1, 2, 3], "b": ["x", None, "z"]}).replace_schema_metadata({"c": "d"})
    for version in stores.READ_VERSIONS[:-1]:
        blob = blob_of(table, version)
        assert stores.version_of(blob) == version
        assert from_blob(blob, "here").equals(table, check_metadata=True)
    assert stores.version_of(stores.to_blob(table)) == stores.VERSION
    for some in (table, table.slice(0, 0), pa.concat_tables([table] * 9_999)):  # both levels
        assert from_blob(stores.to_blob(some), "here").equals(some, check_metadata=True)
