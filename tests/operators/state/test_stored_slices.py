"""Slices in a log: what a call appends, and what is read when."""

from __future__ import annotations

from functools import reduce
from operator import add
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_windows.operators.build import build_operator, restore_operator
from gpu_windows.operators.counters import Counters
from gpu_windows.operators.slices.stored import SLICES
from gpu_windows.planning.planner import plan
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.vocabulary.windows import (
    CumulativeEventTimeWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from tests.examples import examples
from tests.operators.state.counting import Counting
from tests.operators.state.put_away import Step, call, rows, take
from tests.operators.state.sliced import inputs, many_slices
from tests.operators.state.tight import with_small_blocks
from tests.planning.queries import AGGREGATES, assigners, query, rows_of

#: The other columns of a row, for windows that sum floats.
FLOATS = {"key": ["a"], "part": pa.array([1], pa.int32()), "ts": [3]}


def is_empty(store: Counting) -> bool:
    """Whether no table has rows, once all is written."""
    store.reopen()
    return store.table_names == []


# ---- nothing that is given differs


@pytest.mark.parametrize("together", [2, 8])
@examples(60)
@given(st.one_of(assigners(), many_slices()), inputs())
def test_slices(together: int, assigner: Any, steps: list[Step]) -> None:
    planned = plan(query(assigner), bounded=False)
    store, whole, now = Counting(), build_operator(planned), LONG_MIN
    with with_small_blocks(together):
        for step in steps:
            operator = restore_operator(planned, store)
            store.forget_counts()
            waits, _ = operator.next_timers()
            got, wanted = take(operator, step), take(whole, step)
            has_read = store.table_ranges[SLICES] > 0
            operator.save()
            for part in ("results", "late"):
                rows, others = (
                    [r for e in es for r in rows_of(getattr(e, part))] for es in (got, wanted)
                )
                assert rows == others
            fired = sum((e.counters for e in got), Counters()).fired
            assert fired == sum((e.counters for e in wanted), Counters()).fired
            assert fired > 0 or not has_read
            if isinstance(step, int):
                due = waits is not None and now < waits <= step
                assert due is (fired > 0)
                now = max(now, step)
    assert is_empty(store)


@examples(60)
@given(st.one_of(assigners(), many_slices()), inputs(exact=False), st.randoms())
def test_a_restart_changes_no_bit(assigner: Any, steps: list[Step], random: Random) -> None:
    planned = plan(query(assigner), bounded=False)
    found = []
    with with_small_blocks():
        for may_go_on in (False, True):
            store, operator, given_ = Counting(), None, []
            for step in steps:
                if operator is None or not may_go_on or random.random() < 0.5:
                    operator = restore_operator(planned, store)
                given_ += [row for e in take(operator, step) for row in e.results.to_pylist()]
                operator.save()
            found.append(sorted(map(repr, given_)))  # a float is shown with all its digits
    assert found[0] == found[1]


def test_what_came_first_is_added_first() -> None:
    """Sums of floats tell the order: 1 is lost beside 1e16."""
    made = query(TumblingEventTimeWindows(10), aggregates={"sum_f": AGGREGATES["sum_f"]})
    planned, store = plan(made, bounded=False), Counting()
    values = [1e16, 1.0, -1e16, 1.0, 1e16, 3.0, -1e16, 2.0, 1e16, 1.0, -1e16, 5.0]
    for value in values:
        call(planned, store, pa.table({**FLOATS, "f": [value]}))
    store.reopen()
    assert [run.rows for run in store.runs(SLICES)] == [1] * 5  # the first eight are one
    ((*_, found),) = call(planned, store, LONG_MAX)
    assert found == reduce(add, values) != reduce(add, values[::-1])


@pytest.mark.parametrize("first", [-(2**40), 0])
def test_a_watermark_jumps_over_all_buckets(first: int) -> None:
    planned = plan(query(SlidingEventTimeWindows(30, 10)), bounded=False)
    store, whole = Counting(), build_operator(planned)
    steps: list[Step] = [rows(*range(first, first + 900, 7)), first + 500, rows(first + 880)]
    for step in [*steps, steps[0], first - 5, LONG_MAX - 1, LONG_MAX]:
        wanted = [row for e in take(whole, step) for row in rows_of(e.results)]
        assert call(planned, store, step) == wanted
    assert is_empty(store)


def test_an_operator_goes_on_after_it_was_saved() -> None:
    planned = plan(query(TumblingEventTimeWindows(10)), bounded=False)
    store, whole = Counting(), build_operator(planned)
    operator = restore_operator(planned, store)
    for step in (rows(1, 11, 21), rows(2, 12), 9, rows(22, 31), rows(33), 25, LONG_MAX):
        got, wanted = take(operator, step), take(whole, step)
        operator.save()
        assert [rows_of(e.results) for e in got] == [rows_of(e.results) for e in wanted]
    assert is_empty(store)


def test_a_call_may_advance_several_times() -> None:
    planned = plan(query(SlidingEventTimeWindows(40, 1)), bounded=False)
    steps: list[Step] = [rows(1, 30), 20, rows(22, 40), 21, 35, rows(36), rows(37), 70]
    whole = build_operator(planned)
    wanted = [row for step in steps for e in take(whole, step) for row in rows_of(e.results)]
    assert call(planned, Counting(), *steps) == wanted


# ---- what a call reads and writes


def test_a_call_reads_what_fires_and_appends_what_comes() -> None:
    planned, store = plan(query(TumblingEventTimeWindows(10)), bounded=False), Counting()

    def seen(*steps: Step) -> tuple[bool, int]:
        """Return whether slices were read, and how many entries there are then."""
        operator = restore_operator(planned, store)
        store.forget_counts()
        for step in steps:
            take(operator, step)
        reads = store.table_ranges[SLICES]
        operator.save()
        return reads > 0, restore_operator(planned, store).state_size()["entries"]

    assert seen(rows(1, 11, 21, 31)) == (False, 4)
    assert seen(rows(22)) == (False, 5)
    assert seen(5) == (False, 5)
    assert seen(9, rows(33))[0]
    assert seen(29)[0]
    assert not seen(rows(40, 32))[0]
    assert seen(LONG_MAX) == (True, 0)
    assert is_empty(store)


def test_slices_that_have_expired_are_gone_once_they_are_half_of_a_file() -> None:
    planned, store = plan(query(SlidingEventTimeWindows(60, 1)), bounded=False), Counting()
    call(planned, store, rows(0, 1, 5))
    call(planned, store, rows(1, 9))

    def state(watermark: int) -> tuple[int, int | None]:
        call(planned, store, watermark)
        operator = restore_operator(planned, store)
        return operator.state_size()["entries"], operator.next_timers()[0]

    assert state(58) == (5, 59)
    assert state(60) == (2, 61)  # slices 0 and 1 have expired: what is left is written again
    assert state(63) == (2, 64)
    assert state(64) == (1, 65)  # slice 5 too
    assert state(68) == (0, None)
    assert is_empty(store)


def test_slices_that_have_expired_set_no_timer() -> None:
    """The window of the only slice that is live comes later than those of the expired ones."""
    cumulative = CumulativeEventTimeWindows(32, 1)
    planned, store = plan(query(cumulative), bounded=False), Counting()
    call(planned, store, rows(31))
    call(planned, store, rows(35), 34)
    assert restore_operator(planned, store).next_timers() == (35, None)
    sliding, store = plan(query(SlidingEventTimeWindows(17, 1)), bounded=False), Counting()
    for step in (rows(0, 1), rows(40), 16):
        call(sliding, store, step)
    assert restore_operator(sliding, store).next_timers() == (17, None)
    call(sliding, store, 17)
    assert restore_operator(sliding, store).next_timers() == (40, None)


def test_a_window_that_fires_reads_its_slices_alone() -> None:
    planned, store = plan(query(TumblingEventTimeWindows(1_000)), bounded=False), Counting()
    for number in range(6):
        call(planned, store, rows(*range(40_000 * number, 40_000 * (number + 1), 4)))
    store.reopen()
    size = store.live_size
    store.forget_counts()
    call(planned, store, 999)
    assert 0 < store.counts["bytes_read"] < size
