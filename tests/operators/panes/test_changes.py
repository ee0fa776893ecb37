"""Changes of a table: rows of sessions that grew or merged are taken back, exactly once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_windows.functions.window import Collect
from gpu_windows.operators.build import build_operator, restore_operator
from gpu_windows.operators.panes.changes import Changes, Windows, assign_to_sessions
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.memory_log import MemoryLog
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.plan import Strategy
from gpu_windows.planning.planner import plan
from gpu_windows.rules import LONG_MAX
from gpu_windows.vocabulary.evictors import CountEvictor
from gpu_windows.vocabulary.options import Options
from gpu_windows.vocabulary.triggers import (
    CountTrigger,
    PurgingTrigger,
)
from gpu_windows.vocabulary.windows import (
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
    WindowAssigner,
)
from tests.examples import examples
from tests.operators.panes.queries import WITH_GAP, Step, inputs, ordered, triggers
from tests.planning.queries import query
from tests.simulation.user_parts import SessionsUpTo

Engine = str
ENGINES = ("auto", "reference")


def sessions(engine: Engine = "auto", assigner: WindowAssigner | None = None, **parts: Any) -> Any:
    """A query of sessions with a gap of 10 that counts rows and tells changes."""
    made = query(
        EventTimeSessionWindows(10) if assigner is None else assigner,
        WITH_GAP,
        firing_columns=True,
        changes=True,
        **parts,
    )
    return replace(made, options=Options(engine=engine))  # type: ignore[arg-type]


def rows(*times: int, key: str | None = "a", gap: int = 1) -> Step:
    """Rows of a key."""
    found = [{"key": key, "ts": ts, "i": 1, "gap": gap} for ts in times]
    return "rows", pa.Table.from_pylist(found, schema=WITH_GAP)


def told(made: WindowQuery, *steps: Step) -> list[tuple[Any, ...]]:
    """Return of each result the bounds, the rows, the firing and the change."""
    operator, found = build_operator(plan(made, bounded=False)), []
    for kind, value in steps:
        advance = {"watermark": operator.advance_watermark, "rows": operator.process}
        for emission in advance.get(kind, operator.advance_processing_time)(value):
            found += emission.results.to_pylist()
    names = ("window_start", "window_end", made.result_names[0], "firing", "change")
    return [tuple(row[name] for name in names) for row in found]


COUNT: dict[str, Any] = {"trigger": CountTrigger(1), "function": Collect(("i",))}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_session_that_grows_takes_its_row_back(engine: Engine) -> None:
    assert told(sessions(engine, **COUNT), rows(0, 5, 7, 3)) == [
        (0, 10, [1], 0, "insert"),
        (0, 10, None, 1, "delete"),
        (0, 15, [1, 1], 1, "insert"),
        (0, 15, None, 2, "delete"),
        (0, 17, [1, 1, 1], 2, "insert"),
        (0, 17, [1, 1, 1, 1], 3, "update_after"),
    ]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_late_row_between_two_sessions_takes_both_rows_back(engine: Engine) -> None:
    found = told(sessions(engine, allowed_lateness=50), rows(0, 18), ("watermark", 40), rows(9))
    assert [row[:2] + row[3:] for row in found] == [
        (0, 10, 0, "insert"),
        (18, 28, 0, "insert"),
        (0, 10, 2, "delete"),
        (18, 28, 2, "delete"),
        (0, 28, 2, "insert"),
    ]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_row_stays_until_the_session_that_grew_fires(engine: Engine) -> None:
    """A table never lacks a session that it has had; a window that expires keeps its row."""
    made = sessions(engine, trigger=CountTrigger(2), function=Collect(("i",)))
    first = [(0, 11, [1, 1], 0, "insert")]
    assert told(made, rows(0, 1, 5)) == first
    assert told(made, rows(0, 1, 5), ("watermark", 100)) == first
    assert told(made, rows(0, 1, 5, 6)) == [
        *first,
        (0, 11, None, 1, "delete"),
        (0, 16, [1] * 4, 1, "insert"),
    ]


@pytest.mark.parametrize("engine", ENGINES)
def test_the_row_of_a_session_that_expired_stays(engine: Engine) -> None:
    """A later session may cover it, as in Flink, but was not made of it."""
    made = sessions(engine, EventTimeSessionWindows(0, "gap"), **COUNT)
    found = told(made, rows(0, gap=15), ("watermark", 20), rows(0, gap=100))
    assert found == [(0, 15, [1], 0, "insert"), (0, 100, [1], 0, "insert")]


@pytest.mark.parametrize("engine", ENGINES)
def test_purging_forgets_rows_and_not_the_result(engine: Engine) -> None:
    made = sessions(engine, trigger=PurgingTrigger(CountTrigger(1)), function=Collect(("i",)))
    assert told(made, rows(0, 5)) == [
        (0, 10, [1], 0, "insert"),
        (0, 10, None, 1, "delete"),
        (0, 15, [1], 1, "insert"),
    ]


@pytest.mark.parametrize("engine", ENGINES)
def test_evictors_null_keys_and_processing_time(engine: Engine) -> None:
    made = sessions(engine, ProcessingTimeSessionWindows(10), **COUNT, evictor=CountEvictor.of(1))
    steps = rows(0, key=None), ("processing_time", 4), rows(0, key=None)
    assert told(made, *steps) == [
        (0, 10, [1], 0, "insert"),
        (0, 10, None, 1, "delete"),
        (0, 14, [1], 1, "insert"),
    ]


def test_sessions_of_users_that_merge() -> None:
    found = told(sessions("auto", SessionsUpTo(10, 30), **COUNT), rows(0, 5))
    assert [row[-1] for row in found] == ["insert", "delete", "insert"]


@pytest.mark.parametrize("cut", range(6))
@pytest.mark.parametrize("engine", ENGINES)
def test_a_restart_between_a_firing_and_the_growth(engine: Engine, cut: int) -> None:
    steps = [rows(0, 20), rows(0, key="b"), ("watermark", 3), rows(12), rows(28), rows(35)]
    made = sessions(engine, **COUNT, allowed_lateness=100)
    planned = plan(made, bounded=False)
    assert (planned.strategy is Strategy.BUFFER) == (engine == "auto")
    store = MemoryLog()
    whole = [*_stored(planned, MemoryLog(), steps)]
    parts = [*_stored(planned, store, steps[:cut]), *_stored(planned, store, steps[cut:])]
    assert parts == whole
    assert [row[-1] for row in whole].count("delete") == 3


def _stored(planned: Any, store: StateLog, steps: list[Step]) -> Iterator[Any]:
    """Yield what an operator gives that is put away after each step."""
    for kind, value in steps:
        operator = restore_operator(planned, store)
        advance = operator.process if kind == "rows" else operator.advance_watermark
        for emission in advance(value):
            yield from ordered(emission.results)
        operator.save()


# ---- properties

#: All that a key has in a table: window to values.
Table = dict[Any, dict[tuple[int, int], Any]]


@examples(150)
@given(
    triggers().filter(lambda trigger: trigger.can_merge()),
    inputs(),
    st.sampled_from(ENGINES),
    st.booleans(),
)
def test_the_changes_are_those_of_the_table_of_the_latest_windows(
    trigger: Any, steps: list[Step], engine: Engine, in_processing_time: bool
) -> None:
    """Of windows that never expire: a firing takes the place of the rows that it covers."""
    assigner = ProcessingTimeSessionWindows(20) if in_processing_time else None
    made = sessions(engine, assigner, trigger=trigger, allowed_lateness=10_000)
    table: Table = {}
    for row in _results(made, steps):
        key, window, values, change = row[:2], row[2:4], row[4:-3], row[-1]
        of_key = table.setdefault(key, {})
        if change == "delete":
            del of_key[window]
        else:
            assert (window in of_key) == (change == "update_after")
            of_key[window] = values
    plain = replace(made, changes=False)
    latest: Table = {}
    for row in _results(plain, steps):
        of_key, window = latest.setdefault(row[:2], {}), row[2:4]
        for other in [w for w in of_key if window[0] <= w[0] and w[1] <= window[1]]:
            del of_key[other]
        of_key[window] = row[4:-2]
    assert table == latest


def _results(made: WindowQuery, steps: list[Step]) -> Iterator[Any]:
    """Yield the results, until the end of time, when windows go."""
    operator = build_operator(plan(made, bounded=False))
    for kind, value in steps:
        if (kind, value) == ("watermark", LONG_MAX):
            return
        advance = {"watermark": operator.advance_watermark, "rows": operator.process}
        for emission in advance.get(kind, operator.advance_processing_time)(value):
            yield from ordered(emission.results)


SPANS = st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 9))


@examples(200)
@given(st.lists(SPANS, max_size=8), st.lists(SPANS, max_size=14))
def test_what_firings_take_the_place_of(before: list[Any], fired: list[Any]) -> None:
    """As one window at a time: of each that is there, the first firing that covers it."""
    changes = Changes.of(_windows(before), _windows(fired))
    there = [(code, start, start + length) for code, start, length in before]
    gone, replaces = [], []
    for number, (code, start, length) in enumerate(fired):
        own = (code, start, start + length)
        covered = [w for w in there if w[0] == code and start <= w[1] and w[2] <= own[2]]
        replaces.append(own in covered)
        gone += [(*w, number) for w in sorted(covered) if w != own]
        there = [w for w in there if w not in covered] + [own]
    assert changes.replaces.tolist() == replaces
    assert [*zip(*_take_lists(changes.gone), changes.by.tolist(), strict=True)] == gone
    assert sorted(zip(*_take_lists(changes.left), strict=True)) == sorted(there)


def test_windows_go_to_the_sessions_that_hold_them() -> None:
    sessions = _windows([(1, 20, 5), (0, 0, 9), (1, 0, 9)])
    found = assign_to_sessions(
        _windows([(1, 3, 2), (1, 12, 1), (0, 0, 9), (1, 1, 1), (2, 0, 1)]), sessions
    )
    assert found.begins.tolist() == [0, 0, 1, 3]
    assert found.start.tolist() == [0, 1, 3]


def _windows(spans: list[Any]) -> Windows:
    codes, start, length = np.array(spans, np.int64).reshape(-1, 3).T
    return Windows(codes, start, start + length)


def _take_lists(windows: Windows) -> list[list[int]]:
    return [windows.codes.tolist(), windows.start.tolist(), windows.last.tolist()]
