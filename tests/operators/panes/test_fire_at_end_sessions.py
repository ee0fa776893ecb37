"""Sessions whose rows wait for their end, in a store: as if they were never put away."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_windows.aggregates.built_in import first, last
from gpu_windows.errors import StateCorruptedError
from gpu_windows.functions.window import Collect
from gpu_windows.operators.build import build_operator, restore_operator
from gpu_windows.operators.panes import fire_at_end_sessions
from gpu_windows.operators.panes.fire_at_end_sessions import FireAtEndSessionsOperator
from gpu_windows.operators.panes.stored import WINDOWS
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.plan import Plan
from gpu_windows.planning.planner import plan
from gpu_windows.rules import LONG_MAX
from gpu_windows.vocabulary.deltas import Delta
from gpu_windows.vocabulary.evictors import CountEvictor, DeltaEvictor, TimeEvictor
from gpu_windows.vocabulary.options import Options
from gpu_windows.vocabulary.triggers import EventTimeTrigger, PurgingTrigger
from gpu_windows.vocabulary.windows import EventTimeSessionWindows
from tests.examples import examples
from tests.operators.panes.queries import WITH_GAP, run
from tests.operators.slices.tasks import with_arrival
from tests.operators.state.counting import Counting
from tests.operators.state.put_away import Named, by_key, put_away_after_each
from tests.operators.state.tight import with_small_blocks
from tests.planning.queries import query

COLLECT: dict[str, Any] = {"function": Collect(("i", "ts"))}
NEEDING_ROWS: tuple[dict[str, Any], ...] = (
    COLLECT,
    {"evictor": CountEvictor(False, 2)},
    {"evictor": TimeEvictor(True, 6), **COLLECT},
    {"evictor": DeltaEvictor(False, 1.0, Delta("i", "abs_diff")), **COLLECT},
    {"aggregates": {"first": first("i"), "last": last("i")}},
)
#: Time, gap and key of a row.
Row = tuple[int, int, str]


def asked(gap: int | None = 10, **needing: Any) -> WindowQuery:
    """Return a query over sessions; without a gap each row has one."""
    sessions = EventTimeSessionWindows(0, "gap") if gap is None else EventTimeSessionWindows(gap)
    return query(sessions, WITH_GAP, **(needing or COLLECT))


def rows(*of: Row) -> pa.Table:
    named = [
        {"key": key, "part": 1, "ts": ts, "i": i, "gap": gap} for i, (ts, gap, key) in enumerate(of)
    ]
    return with_arrival(pa.Table.from_pylist(named, schema=WITH_GAP))


def at(*times: int) -> Named:
    return "rows", rows(*((time, 10, "a") for time in times))


row = st.tuples(st.integers(-60, 60), st.integers(1, 20), st.sampled_from("ab"))
steps = st.lists(
    st.one_of(
        st.lists(row, min_size=1, max_size=4).map(lambda of: ("rows", rows(*of))),
        st.integers(-60, 80).map(lambda time: ("watermark", time)),
        st.integers(0, 9).map(lambda time: ("processing_time", time)),
    ),
    max_size=14,
)


@examples(120)
@given(
    st.sampled_from([None, 1, 10, 25]), st.sampled_from(NEEDING_ROWS), st.booleans(), steps,
    st.booleans(),
)  # fmt: skip
def test_put_away_after_each_call(
    gap: int | None, needing: dict[str, Any], purges: bool, given_: list[Named], small: bool
) -> None:
    trigger = PurgingTrigger(EventTimeTrigger()) if purges else EventTimeTrigger()
    made = replace(asked(gap, **needing), trigger=trigger)
    planned, ended = plan(made, bounded=False), [*given_, ("watermark", LONG_MAX)]
    assert isinstance(build_operator(planned), FireAtEndSessionsOperator)
    with pytest.MonkeyPatch.context() as patch, with_small_blocks() if small else nullcontext():
        if small:
            patch.setattr(fire_at_end_sessions, "_SLACK", 0)
        assert not any(put_away_after_each(planned, ended).values())
        store = Counting()
        reference = plan(replace(made, options=Options(engine="reference")), bounded=False)
        wanted = run(build_operator(reference), ended)
        for step, (expected, *counted) in zip(ended, wanted, strict=True):
            operator = restore_operator(planned, store)
            ((found, *told),) = run(operator, [step])
            operator.save()
            assert (by_key(found), told) == (by_key(expected), counted)
        store.reopen()
    assert store.table_names == []


def lists(planned: Plan, *given_: Named) -> list[list[int]]:
    """Return the times of the rows of every session that fires, each step in its own call."""
    assert not any(put_away_after_each(planned, [*given_, ("watermark", LONG_MAX)]).values())
    whole = run(build_operator(planned), [*given_, ("watermark", LONG_MAX)])
    return [result[-1] for results, *_ in whole for result in results]


def test_rows_of_a_session_that_is_over_do_not_come_back() -> None:
    """A row that is late by itself makes the next session reach over times of the one before."""
    planned = plan(asked(), bounded=False)
    found = lists(planned, at(12, 0), ("watermark", 9), at(3), at(-2))
    assert [sorted(times) for times in found] == [[0], [-2, 3, 12]]


def test_merged_sessions_keep_the_order_in_which_they_are_put_together() -> None:
    planned = plan(asked(), bounded=False)
    for times in ((0, 15, 30, 8, 22), (30, 15, 0, 8, 22), (15, 0, 8, 30, 22), (40, 0, 20, 10, 30)):
        given_ = [at(time) for time in times]
        reference = replace(asked(), options=Options(engine="reference"))
        steps_ = [*given_, ("watermark", LONG_MAX)]
        wanted = run(build_operator(plan(reference, bounded=False)), steps_)
        expected = [result[-1] for results, *_ in wanted for result in results]
        assert lists(planned, *given_) == expected


def test_an_operator_goes_on_after_it_was_saved() -> None:
    planned, store = plan(asked(), bounded=False), Counting()
    operator, whole = restore_operator(planned, store), build_operator(planned)
    for step in [at(1, 50), ("watermark", 20), at(45, 30), at(31), ("watermark", 300)]:
        assert [*run(operator, [step])] == [*run(whole, [step])]
        assert operator.state_size()["rows"] == whole.state_size()["rows"]
        if step[0] == "watermark":
            operator.save()
    assert operator.state_size()["rows"] == 0


def test_rows_are_read_when_their_session_fires() -> None:
    planned, store = plan(asked(1_000), bounded=False), Counting()
    written = []
    for number in range(40):
        operator = restore_operator(planned, store)
        [*run(operator, [("rows", rows(*((number, 1, f"key {key}") for key in range(50))))])]
        operator.save()
        store.forget_counts()
        store.reopen()
        written.append(store.counts["bytes_written"])
    assert sorted(written[-10:])[5] < 1.25 * sorted(written[:10])[5]


def test_rows_that_are_missing_show() -> None:
    planned, store = plan(asked(), bounded=False), Counting()
    operator = restore_operator(planned, store)
    [*run(operator, [at(1, 2)])]
    operator.save()
    store.reopen()
    (rows_of_sessions,) = store.runs(fire_at_end_sessions.ROWS)
    assert len(store.runs(WINDOWS)) == 1
    store.drop(rows_of_sessions)
    with pytest.raises(StateCorruptedError, match="got 0 of 2 rows"):
        [*restore_operator(planned, store).advance_watermark(50)]
