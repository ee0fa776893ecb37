"""An operator that is put away in a store after every call gives what one does that is not."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, reject

import gpu_windows as gw
from gpu_windows.operators.build import restore_operator
from gpu_windows.planning.plan import Strategy
from gpu_windows.planning.planner import plan
from gpu_windows.planning.query import Query
from gpu_windows.vocabulary.triggers import (
    ContinuousEventTimeTrigger,
    CountTrigger,
    EventTimeTrigger,
    Trigger,
)
from gpu_windows.vocabulary.windows import (
    EventTimeSessionWindows,
    TumblingEventTimeWindows,
)
from tests.examples import examples
from tests.operators.panes.queries import inputs as machine_inputs
from tests.operators.panes.queries import queries
from tests.operators.slices.tasks import with_arrival
from tests.operators.state.counting import Counting
from tests.operators.state.put_away import Named, Step, put_away_after_each, rows, take
from tests.operators.state.tight import with_small_blocks
from tests.planning.queries import SCHEMA, query


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
    with with_small_blocks():
        assert not any(put_away_after_each(planned, steps).values())


@pytest.mark.thorough
def test_a_call_reads_and_writes_the_keys_that_it_touches() -> None:
    made = query(TumblingEventTimeWindows(10), trigger=CountTrigger(100), allowed_lateness=5)
    planned, store = plan(made, bounded=False), Counting()

    def call(*steps: Step) -> tuple[int, int]:
        """Return how many bytes are read and written."""
        operator = restore_operator(planned, store)
        store.forget_counts()
        for step in steps:
            take(operator, step)
        operator.save()
        read = store.counts["bytes_read"]
        store.forget_counts()
        store.reopen()
        return read, store.counts["bytes_written"]

    keys = [f"k{i}" for i in range(40_000)]
    named = [{"key": key, "part": 1, "ts": 3, "i": 1} for key in keys]
    many = with_arrival(pa.Table.from_pylist(named, schema=SCHEMA))
    read, whole = call(many)
    assert (read, whole > 400_000) == (0, True)
    for touched in (many.slice(0, 1), many.slice(7, 3), rows(25)):
        read, written = call(touched)
        assert read < whole / 10
        assert written < 10_000
    read, written = call(8)
    assert (read, written < 10_000) == (0, True)
    read, written = call(14)
    assert read > whole / 4
    assert written < 10_000  # of the only window that is left


@pytest.mark.parametrize("trigger", [None, CountTrigger(7), ContinuousEventTimeTrigger(50)])
def test_an_open_session_does_not_grow_with_its_rows(trigger: Trigger | None) -> None:
    assigner = EventTimeSessionWindows(1_000)
    numbers = {"n": gw.count(), "mean": gw.mean("i"), "spread": gw.stddev("i"), "top": gw.max("i")}
    trigger = trigger or EventTimeTrigger()
    made = query(assigner, trigger=trigger, aggregates=numbers, allowed_lateness=5)
    planned, store, sizes = plan(made, bounded=False), Counting(), []
    for number in range(24):
        operator = restore_operator(planned, store)
        take(operator, rows(*range(100 * number, 100 * number + 100)))
        take(operator, 100 * number)
        assert operator.state_size()["rows"] == 0
        operator.save()
        store.reopen()
        sizes.append(store.live_size)
    assert max(sizes[8:]) < max(sizes[:8]) + 200  # eight runs, then one
