"""Windows whose rows wait for their end, in a store: as if they were never put away."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from gpu_windows.functions.top import Top
from gpu_windows.functions.window import Collect
from gpu_windows.operators.build import build_operator, restore_operator
from gpu_windows.operators.panes import fire_at_end
from gpu_windows.operators.panes.fire_at_end import FireAtEndOperator
from gpu_windows.operators.panes.fire_at_end_machine import FireAtEndMachine
from gpu_windows.operators.state import row_buffer
from gpu_windows.operators.state.memory_log import MemoryLog
from gpu_windows.planning.planner import plan
from gpu_windows.rules import LONG_MAX, latest_unit
from gpu_windows.vocabulary.evictors import CountEvictor
from gpu_windows.vocabulary.windows import (
    CumulativeEventTimeWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from tests.examples import examples
from tests.operators.panes.queries import run
from tests.operators.state.put_away import call, put_away_after_each, rows
from tests.operators.state.tight import with_small_blocks
from tests.planning.queries import query

ASSIGNERS = (
    CumulativeEventTimeWindows(600, 10),
    CumulativeEventTimeWindows(30, 10, 7),
    SlidingEventTimeWindows(100, 7),
    SlidingEventTimeWindows(10, 25),
    TumblingEventTimeWindows(10),
)


def asked(assigner: Any, *, evicts: bool = False) -> Any:
    if evicts:
        return plan(query(assigner, evictor=CountEvictor.of(2)), bounded=False)
    return plan(query(assigner, function=Collect(("i",))), bounded=False)


steps = st.lists(
    st.one_of(
        st.lists(st.integers(-700, 700), min_size=1, max_size=4).map(
            lambda ts: ("rows", rows(*ts))
        ),
        st.integers(-800, 800).map(lambda at: ("watermark", at)),
    ),
    max_size=12,
)


@examples(100)
@given(st.sampled_from(ASSIGNERS), st.booleans(), steps, st.booleans())
def test_put_away_after_each_call(
    assigner: Any, evicts: bool, given_: list[Any], together: bool
) -> None:
    planned = asked(assigner, evicts=evicts)
    assert isinstance(build_operator(planned), FireAtEndOperator)
    with with_small_blocks() if together else nullcontext():
        assert not any(put_away_after_each(planned, [*given_, ("watermark", LONG_MAX)]).values())


top_steps = st.lists(
    st.one_of(
        st.lists(
            st.tuples(st.sampled_from("abc"), st.integers(-700, 700)), min_size=1, max_size=4
        ).map(lambda some: ("rows", rows_of_keys(some))),
        st.integers(-800, 800).map(lambda at: ("watermark", at)),
    ),
    max_size=12,
)


def rows_of_keys(some: list[tuple[str, int]]) -> pa.Table:
    """Return a row a key and a time; the value is the time."""
    keys, times = zip(*some, strict=True)
    table = rows(*times)
    return table.set_column(table.schema.get_field_index("key"), "key", pa.array(keys))


def of_top(assigner: Any) -> Any:
    output = pa.schema([("i", pa.int64()), ("number", pa.int64())])
    return plan(query(assigner, function=Top(1, ((0, False),), ("i",), output)), bounded=False)


@examples(100)
@given(st.sampled_from(ASSIGNERS), top_steps)
def test_first_rows_of_several_keys_are_kept_when_segments_merge(
    assigner: Any, given_: list[Any]
) -> None:
    with with_small_blocks():
        assert not any(
            put_away_after_each(of_top(assigner), [*given_, ("watermark", LONG_MAX)]).values()
        )


@examples(100)
@given(st.sampled_from(ASSIGNERS), st.booleans(), top_steps, st.booleans())
def test_keys_fire_in_parts_where_rows_are_many(
    assigner: Any, evicts: bool, given_: list[Any], small: bool
) -> None:
    """The limit is that of a few rows; every part reads what it selects, block by block."""
    with (
        patch.object(fire_at_end, "FIRE_BYTES", 300),
        patch.object(row_buffer, "_PART_BYTES", 600),
        with_small_blocks() if small else nullcontext(),
    ):
        planned, end = asked(assigner, evicts=evicts), ("watermark", LONG_MAX)
        assert not any(put_away_after_each(planned, [*given_, end]).values())
        assert not any(put_away_after_each(of_top(assigner), [*given_, end]).values())


def test_many_rows_are_loaded_by_groups_of_keys_and_few_at_once() -> None:
    """A sixteenth of the keys at a time, whatever the rows of all are."""
    planned, log = asked(TumblingEventTimeWindows(10)), MemoryLog()
    loaded: list[int] = []

    def load(machine: FireAtEndMachine, table: pa.Table) -> None:
        loaded.append(len(table))
        whole(machine, table)

    whole = FireAtEndMachine.load_stored_rows
    keys = [f"k{i}" for i in range(4_000)]
    with patch.object(FireAtEndMachine, "load_stored_rows", load):
        for limit, count in ((1 << 28, 1), (1_000, fire_at_end.MAX_PARTS)):
            loaded.clear()
            with patch.object(fire_at_end, "FIRE_BYTES", limit):
                call(planned, log, rows_of_keys([(key, 5) for key in keys]))
                fired = call(planned, log, 100)
            assert len(fired) == len(keys)
            assert len(loaded) == count
            assert max(loaded) <= 2 * len(keys) // count
            log = MemoryLog()


def test_a_segment_that_spans_what_is_due_and_has_nothing_due() -> None:
    planned = asked(CumulativeEventTimeWindows(600, 10))
    steps = [("rows", rows(585, 625)), *(("watermark", at) for at in (599, 609, 619, LONG_MAX))]
    assert not any(put_away_after_each(planned, steps).values())


def test_the_last_window_of_time_waits_for_its_end() -> None:
    assigner = TumblingEventTimeWindows(10)
    last = latest_unit(assigner.grid())
    steps = [("rows", rows(last - 1)), ("watermark", last), ("watermark", LONG_MAX)]
    whole = run(build_operator(asked(assigner)), steps)
    assert [len(results) for results, *_ in whole] == [0, 0, 1]
    assert not any(put_away_after_each(asked(assigner), steps).values())


def test_an_operator_goes_on_after_it_was_saved() -> None:
    planned, store = asked(SlidingEventTimeWindows(100, 7)), MemoryLog()
    operator, whole = restore_operator(planned, store), build_operator(planned)
    for step in [("rows", rows(1, 50)), ("watermark", 40), ("rows", rows(45)), ("watermark", 300)]:
        assert [*run(operator, [step])] == [*run(whole, [step])]
        operator.save()
    assert operator.state_size() == {"rows": 0}
