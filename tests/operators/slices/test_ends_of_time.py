"""Near the ends of int64 slices give what the reference gives, in memory and in a store."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_windows.operators.base import Operator
from gpu_windows.operators.build import build_operator, restore_operator
from gpu_windows.operators.state.memory_log import MemoryLog
from gpu_windows.planning.plan import Plan, Strategy
from gpu_windows.planning.planner import plan
from gpu_windows.rules import LONG_MAX, LONG_MIN, latest_unit
from gpu_windows.vocabulary.options import Options
from gpu_windows.vocabulary.windows import (
    SlicedAssigner,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from tests.examples import examples
from tests.operators.slices.tasks import with_arrival
from tests.operators.state.put_away import Step, call, rows, take
from tests.planning.queries import AGGREGATES, assigners, query, rows_of, tables

#: More than what windows that are drawn here reach over.
_MARGIN = 700


@st.composite
def far_steps(draw: st.DrawFn, assigner: SlicedAssigner) -> list[Step]:
    """Rows about the first or last usable time in batches, watermarks up to the end of int64."""
    low, high = assigner.usable_ticks
    if draw(st.booleans()):
        middle, marks = low, st.integers(LONG_MIN, low + _MARGIN)
    else:
        middle, marks = high, st.integers(high - _MARGIN, LONG_MAX)
    table = with_arrival(moved(draw(tables()), middle))
    cuts = sorted(draw(st.lists(st.integers(0, len(table)), max_size=4)))
    steps: list[Step] = []
    for begin, end in pairwise([0, *cuts, len(table)]):
        steps += [table.slice(begin, end - begin), draw(marks)]
    return [*steps, LONG_MAX]


def moved(table: pa.Table, middle: int) -> pa.Table:
    """Return the rows at times about ``middle`` in place of 0, as far as int64 has them."""
    given = table["ts"].to_pylist()
    times = [None if ts is None else min(max(middle + ts, LONG_MIN), LONG_MAX) for ts in given]
    at = table.schema.get_field_index("ts")
    return table.set_column(at, "ts", pa.array(times, pa.int64()))


def planned(assigner: SlicedAssigner) -> tuple[Plan, Plan]:
    """Return the plan of a stream with slices, and the one of the reference."""
    mine = plan(query(assigner), bounded=False)
    assert mine.strategy is Strategy.SLICES
    return mine, plan(query(assigner, options=Options(engine="reference")), bounded=False)


def given_by(operator: Operator, step: Step) -> tuple[list[Any], list[Any]]:
    """Return the results and the late rows of a step."""
    found = take(operator, step)
    results = [row for emission in found for row in rows_of(emission.results)]
    late = [row for emission in found for row in rows_of(emission.late)]
    return sorted(results, key=repr), sorted(late, key=repr)


@examples(100)
@given(assigners(), st.data())
def test_slices_equal_reference(assigner: SlicedAssigner, data: st.DataObject) -> None:
    steps = data.draw(far_steps(assigner))
    mine, reference = planned(assigner)
    local, truth, store = build_operator(mine), build_operator(reference), MemoryLog()
    for step in steps:
        wanted = given_by(truth, step)
        assert given_by(local, step) == wanted
        stored = restore_operator(mine, store)
        assert given_by(stored, step) == wanted
        stored.save()
    assert not any(local.state_size().values())
    store.reopen()
    assert store.table_names == []


@pytest.mark.parametrize(
    "assigner", [TumblingEventTimeWindows(10), SlidingEventTimeWindows(25, 10)]
)
def test_the_last_windows_wait_for_their_end(assigner: SlicedAssigner) -> None:
    made = query(assigner, aggregates={"sum_i": AGGREGATES["sum_i"]})
    mine = plan(made, bounded=False)
    last, store = latest_unit(assigner.grid()), MemoryLog()
    ends = sorted(window.end for window in assigner.assign(last))
    assert call(mine, store, rows(last)) == []
    for end in ends:
        assert restore_operator(mine, store).next_timers() == (end - 1, None)
        assert call(mine, store, end - 2) == []
        assert len(call(mine, store, end - 1)) == 1
    assert restore_operator(mine, store).next_timers() == (None, None)
    assert call(mine, store, rows(last), LONG_MAX) == []  # it is late
