"""Interval joins over time: the kernels against Flink's algorithm, and what is stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_windows as gw
from gpu_windows import errors
from gpu_windows.operators.base import StatefulOperator
from gpu_windows.operators.build import build_operator, restore_operator
from gpu_windows.operators.counters import Counters
from gpu_windows.operators.joins import rows as join_rows
from gpu_windows.operators.state import state_file_writer
from gpu_windows.planning.plan import Plan, Strategy
from gpu_windows.planning.planner import plan
from gpu_windows.planning.query import Query
from gpu_windows.rules import LONG_MAX, LONG_MIN
from tests.examples import examples
from tests.operators.joins.interval_joins import BOUNDS, NEAREST, batch_of, in_time, seen
from tests.operators.joins.rows import ENGINES, HOW, STRICT, Row, table
from tests.operators.state.counting import Counting
from tests.operators.state.tight import with_small_blocks
from tests.reference.run import reference_operator, run_by

Step = list[tuple[bool, Row]] | int
#: After how many steps an operator is put away, 0 for never, and whether in many small blocks.
STORED = st.sampled_from([(0, False), (1, False), (1, True), (3, True)])


def steps() -> st.SearchStrategy[list[Step]]:
    row = st.tuples(
        st.sampled_from(["a", "b", None]),
        st.none() | st.integers(-15, 25) | st.sampled_from([LONG_MIN, LONG_MAX]),
        st.integers(0, 9),
    )
    rows = st.lists(st.tuples(st.booleans(), row), min_size=1, max_size=6)
    return st.lists(rows | st.integers(-15, 30), max_size=10)


def _run(
    planned: Plan, script: list[Step], *, stored: int, by: str = "auto"
) -> Iterator[tuple[Counter[Any], list[Any], int]]:
    """Yield what each step gives: results, rows that are given back, and how many are late.

    ``stored``: after how many steps the operator is put away; 0 for never.
    """
    build = build_operator if by == "auto" else reference_operator
    store, operator = Counting(), build(planned)
    batches = (step for step in script if not isinstance(step, int))
    has_no_end = any(row[1] == LONG_MAX for batch in batches for _, row in batch)
    for number, step in enumerate([*script, LONG_MAX]):
        if stored and number % stored == 0:
            operator = restore_operator(planned, store)
        work = (
            operator.advance_watermark(step)
            if isinstance(step, int)
            else operator.process(batch_of(step, planned))
        )
        results: Counter[Any] = Counter()
        back: list[Any] = []
        counters = Counters()
        for emission in work:
            results += seen(emission.results)
            back += [tuple(row.values()) for row in emission.late.to_pylist()]
            counters += emission.counters
        if stored and (number % stored == stored - 1 or number == len(script)):
            assert isinstance(operator, StatefulOperator)
            operator.save()
            _check_timers(operator, has_no_end=has_no_end)
        yield results, back, counters.late
    assert not any(operator.state_size().values())
    store.reopen()
    assert set(store.table_names) <= {"joined"}


def _check_timers(operator: StatefulOperator[Any], *, has_no_end: bool) -> None:
    """Check that there is a timer if rows are held, but for one of the last tick."""
    held = sum(operator.state_size().values())
    timer, processing = operator.next_timers()
    assert processing is None
    assert (timer is not None) == (held > 0) or has_no_end


@examples(150)
@given(
    script=steps(), bounds=BOUNDS, how=st.sampled_from(HOW), exclusive=st.booleans(),
    late=st.booleans(), condition=st.booleans(), stored=STORED,
)  # fmt: skip
def test_kernels_do_what_the_reference_does(
    script: list[Step], bounds: tuple[int, int], how: str, *,
    exclusive: bool, late: bool, condition: bool, stored: tuple[int, bool],
) -> None:  # fmt: skip
    where = pc.field("left_v") + pc.field("right_v") <= 8 if condition else None
    outputs = in_time(
        table([]), table([]), bounds, how, exclusive=(exclusive, exclusive), late=late, where=where
    )
    _compare(outputs.plan.query, script, stored=stored)


@examples(100)
@given(
    script=steps(), bounds=BOUNDS, direction=st.sampled_from(NEAREST),
    how=st.sampled_from(["inner", "left"]), stored=STORED, merged=st.booleans(),
)  # fmt: skip
def test_kernels_find_the_nearest_that_the_reference_finds(
    script: list[Step], bounds: tuple[int, int], direction: str, how: str, *,
    stored: tuple[int, bool], merged: bool,
) -> None:  # fmt: skip
    nothing, most = table([]), join_rows._MAX_ROWS
    query = in_time(nothing, nothing, bounds, how, nearest=direction).plan.query
    join_rows._MAX_ROWS = most if merged else 1
    try:
        _compare(query, script, stored=stored)
    finally:
        join_rows._MAX_ROWS = most


def _compare(query: Query, script: list[Step], *, stored: tuple[int, bool]) -> None:
    planned = plan(query, bounded=False)
    assert planned.strategy is Strategy.INTERVAL_JOIN
    wanted = [*_run(planned, script, stored=0, by="reference")]
    steps_together, in_small_blocks = stored
    with with_small_blocks() if in_small_blocks else nullcontext():
        assert [*_run(planned, script, stored=steps_together)] == wanted


def test_only_runs_of_the_right_time_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    query = in_time(table([]), table([]), (0, 50)).plan.query
    planned, store = plan(query, bounded=False), Counting()
    monkeypatch.setattr(state_file_writer, "MERGE_FANIN", 100)  # no run is merged
    for ts in range(0, 1000, 100):
        operator = restore_operator(planned, store)
        assert list(operator.process(batch_of([(False, ("a", ts, 1))], planned)))
        operator.save()
    store.reopen()
    assert len(store.runs("right")) == 10
    operator = restore_operator(planned, store)
    store.forget_counts()
    found = [e.results for e in operator.process(batch_of([(True, ("a", 480, 2))], planned))]
    assert sum(map(len, found)) == 1
    assert {file for file, _, _ in store.counting.ranges} == {
        run.file for run in store.runs("right") if run.min_time == 500
    }
    assert list(operator.advance_watermark(700)) == []  # right rows up to 700 meet none any more
    operator.save()
    store.reopen()
    assert [run.min_time for run in store.runs("right")] == [800, 900]


def test_a_call_writes_what_it_changes() -> None:
    """Rows that only meet partners, or are over in part, are not written again."""
    nothing = table([])
    for how in ("left", "inner"):
        query = in_time(nothing, nothing, (-5, 5000), how).plan.query
        planned, store = plan(query, bounded=False), Counting()
        many: list[tuple[bool, Row]] = [(False, ("a", ts, 1)) for ts in range(4000)]
        one: list[tuple[bool, Row]] = [(True, ("a", 20, 2))]
        for rows, watermark in ((many, 10), (one, 15)):
            before = [run.file for run in store.runs("right")]
            operator = restore_operator(planned, store)
            assert list(operator.process(batch_of(rows, planned)))
            assert list(operator.advance_watermark(watermark)) == []
            operator.save()
            store.forget_counts()
            store.reopen()
        assert [run.file for run in store.runs("right")] == before != []
        assert store.counts["bytes_written"] < 2_000


# ---- late rows that join


def _planned(bounds: tuple[int, int], how: str, *, late: bool = True) -> Plan:
    return plan(in_time(table([]), table([]), bounds, how, late=late).plan.query, bounded=False)


def _given(by: str, planned: Plan, script: list[Step]) -> tuple[Counter[Any], list[Any], int]:
    """Return all results, all rows that are given back, and how many are late."""
    results: Counter[Any] = Counter()
    back: list[Any] = []
    late = 0
    for step in _run(planned, script, stored=0, by=by):
        results += step[0]
        back += step[1]
        late += step[2]
    return results, back, late


@pytest.mark.parametrize("engine", ENGINES)
def test_a_late_row_joins_what_came_before_it(engine: str) -> None:
    left: tuple[bool, Row] = (True, ("a", 100, 1))
    right: tuple[bool, Row] = (False, ("a", 99, 2))  # is not kept
    pair, alone = [("a", 1, 2)], [("a", 1, None), ("a", None, 2)]
    for rows, inner, full in (([left, right], pair, pair), ([right, left], [], alone)):
        script: list[Step] = [105, rows]
        results, back, late = _given(engine, _planned((-1, 10), "inner"), script)
        assert (results, late, len(back)) == (Counter(inner), 1 - len(inner), 1 - len(inner))
        assert _given(engine, _planned((-1, 10), "full"), script)[0] == Counter[Any](full)


def test_spark_takes_rows_in_an_order_where_some_may_be_late() -> None:
    query = _planned((0, 3), "inner").query
    stream, batch = (plan(query, bounded=bounded, spark=True) for bounded in (False, True))
    assert stream.order == ("event_time", "is_left", "left_v", "right_v")
    assert "what late rows meet depends on the order of arrival" in stream.warnings[0]
    assert batch.order == batch.warnings == ()
    rows = table([])
    ours = gw.stream(rows).event_time("ts", STRICT).key_by("k")
    pairs = ours.interval_join(ours).between("0 s", "3 s").join_late().arrival_order("v")
    named = plan(pairs.with_outputs().select(["v"], ["v"]).plan.query, bounded=False, spark=True)
    assert (named.order, named.warnings) == (("__order_0",), ())
    with pytest.raises(errors.ColumnNotFoundError, match="no such column"):
        pairs.arrival_order("other").with_outputs().select(["v"], ["v"])


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_in_time_are_not_given_back(engine: str) -> None:
    """A row whose partners are all over is not kept; that does not make it late."""
    script: list[Step] = [100, [(True, ("a", 103, 1)), (True, ("a", 99, 2))]]
    results, back, late = _given(engine, _planned((-10, -5), "inner"), script)
    assert (results, late, [row[3] for row in back]) == (Counter(), 1, [2])
    at_it: list[Step] = [100, [(True, ("a", 100, 1)), (False, ("a", 100, 2))]]
    assert _given(engine, _planned((0, 0), "full"), at_it)[0] == Counter(
        [("a", 1, None), ("a", None, 2)]
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_the_clock_of_sql_begins_in_1970(engine: str) -> None:
    rows: list[tuple[bool, Row]] = [
        (True, ("a", -10, 1)), (True, ("a", -1, 2)), (False, ("a", -9, 3)), (False, ("a", 1, 4))
    ]  # fmt: skip
    results, back, late = _given(engine, _planned((0, 3), "full"), [rows])
    assert results == Counter([("a", 1, None), ("a", 2, 4), ("a", None, 3)])
    assert (back, late) == ([], 0)
    results, back, late = _given(engine, _planned((0, 3), "inner"), [rows])
    assert (results, late, len(back)) == (Counter([("a", 2, 4)]), 2, 2)
    ours, its = (table([row for left, row in rows if left == side]) for side in (True, False))
    whole = in_time(ours, its, (0, 3), late=True)  # nothing is late there
    with run_by(engine):
        assert seen(whole.result()) == Counter([("a", 1, 3), ("a", 2, 4)])


@examples(100)
@given(
    rows=st.lists(st.lists(st.tuples(st.booleans(), st.sampled_from("ab"), st.integers(1, 9)),
                           min_size=1, max_size=4), max_size=6),
    bounds=BOUNDS, how=st.sampled_from(HOW),
)  # fmt: skip
def test_rows_in_time_join_alike_with_late_ones_and_without(
    rows: list[list[tuple[bool, str, int]]], bounds: tuple[int, int], how: str
) -> None:
    script: list[Step] = []
    for number, batch in enumerate(rows):
        script.append([(side, (key, 10 * number + at, at)) for side, key, at in batch])
        script.append(10 * number + 9)
    plain = _given("auto", _planned(bounds, how, late=False), script)
    assert _given("auto", _planned(bounds, how), script) == plain
