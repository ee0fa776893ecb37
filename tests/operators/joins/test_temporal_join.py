"""Temporal joins: against a dumb one, the kernels against Flink's algorithm, on every runner."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_windows as gw
from gpu_windows import errors
from gpu_windows.operators.base import Operator
from gpu_windows.operators.build import build_operator, restore_operator
from gpu_windows.operators.joins import pairs as join_pairs
from gpu_windows.operators.state.memory_log import MemoryLog
from gpu_windows.planning.plan import Strategy
from gpu_windows.rules import LONG_MAX, LONG_MIN, VERSIONED_TICKS
from tests.examples import examples
from tests.operators.joins.rows import ENGINES, STRICT
from tests.operators.joins.temporal_join import (
    CASES,
    NOTHING,
    ROWS,
    SCRIPTS,
    Case,
    Dumb,
    Row,
    batch_of,
    planned,
    table,
    taken,
)
from tests.reference.run import reference_operator, run_by

BUILD: dict[str, Any] = {"auto": build_operator, "reference": reference_operator}

# ---- what it gives


@examples(150)
@given(rows=ROWS.flatmap(lambda rows: st.just([*rows, *rows[::-1]])), case=CASES)
def test_tables_are_joined_with_versions(rows: list[Row], case: Case) -> None:
    left_first = sorted(rows, key=lambda row: not row[0])
    wanted = Dumb(case).call(left_first, LONG_MAX)
    for engine in ENGINES:
        outputs = case.outputs(table(rows, left=True), table(rows, left=False))
        with run_by(engine):
            assert [tuple(row.values()) for row in outputs.result().to_pylist()] == wanted
        assert outputs.rejected().num_rows == sum(row[2] is None for row in rows)
        assert outputs.late().num_rows == 0
        assert outputs.metrics()["rows"].to_pylist() == [len(rows)]


@examples(150)
@given(script=SCRIPTS, case=CASES, saves=st.lists(st.booleans(), min_size=6, max_size=6),
       chunk=st.sampled_from([1, 3, 1000]))  # fmt: skip
def test_every_watermark_gives_what_it_reaches(
    script: list[tuple[list[Row], int]], case: Case, saves: list[bool], chunk: int
) -> None:
    before, join_pairs.PAIRS = join_pairs.PAIRS, chunk
    try:
        for engine in ENGINES:
            made, store, dumb = planned(case), MemoryLog(), Dumb(case)
            stored = restore_operator(made, store) if engine == "auto" else None
            operator: Operator = stored or reference_operator(made)
            for (rows, watermark), is_saved in zip(script, saves, strict=False):
                found = taken(operator, batch_of(rows, made), watermark)
                assert found == dumb.call(rows, watermark)
                kept, wanted = operator.state_size()["left"], dumb.left_in_state()
                assert kept == wanted or (kept > wanted and engine == "auto")  # a run goes whole
                if is_saved and stored is not None:
                    stored.save()
                    operator = stored = restore_operator(made, store)
            assert taken(operator, None, LONG_MAX) == dumb.call([], LONG_MAX)
            assert not any(operator.state_size().values())
    finally:
        join_pairs.PAIRS = before


@examples(60)
@given(script=SCRIPTS, case=CASES)
def test_without_a_store_it_is_the_same(script: list[tuple[list[Row], int]], case: Case) -> None:
    made, dumb = planned(case), Dumb(case)
    operator = build_operator(made)
    for rows, watermark in script:
        found = taken(operator, batch_of(rows, made), watermark)
        assert found == dumb.call(rows, watermark)


@pytest.mark.parametrize("engine", ENGINES)
def test_late_rows(engine: str) -> None:
    made = planned(Case())
    operator = BUILD[engine](made)

    def call(*rows: Row, watermark: int) -> list[Any]:
        return taken(operator, batch_of([*rows], made), watermark)

    left, right = (True, "a", 5, 0, None), (False, "a", 4, 1, None)
    newer, older = (False, "a", 8, 2, None), (False, "a", 3, 3, None)
    assert call(right, watermark=6) == []
    assert call(left, watermark=6) == []  # late, and waits for the watermark to move
    assert call(watermark=7) == [("a", 0, 1)]
    assert call(newer, watermark=8) == []  # supersedes the one before
    assert call(left, watermark=9) == [("a", 0, None)]
    assert call(older, left, watermark=10) == [("a", 0, 3)]  # a late version, for once
    assert call(left, watermark=11) == [("a", 0, None)]
    assert operator.state_size() == {"left": 0, "right": 0, "versions": 1}


@pytest.mark.parametrize("engine", ENGINES)
def test_times_at_the_ends_of_what_is_usable(engine: str) -> None:
    first, last = VERSIONED_TICKS
    times = [LONG_MIN + 1, first - 1, first, 0, last, last + 1, LONG_MAX]
    rows: list[Row] = [(True, "a", ts, i, None) for i, ts in enumerate(times)]
    rows += [(False, "a", ts, i, None) for i, ts in enumerate([first - 1, first, last + 1])]
    outputs = Case().outputs(table(rows, left=True), table(rows, left=False))
    with run_by(engine):
        assert outputs.result().to_pydict() == {
            "k": ["a"] * 3, "left_v": [2, 3, 4], "right_v": [1, 1, 1]
        }  # fmt: skip
    assert outputs.rejected()["rejection_reason"].to_pylist() == ["out_of_range_timestamp"] * 6
    whole = Case(lives=last)
    with run_by(engine):
        kept = whole.outputs(table(rows, left=True), table(rows, left=False)).result()
    assert kept["right_v"].to_pylist() == [1, None, None]


# ---- what is kept


def test_of_a_key_one_version_is_kept() -> None:
    made, store = planned(Case()), MemoryLog()
    for call in range(30):
        operator = restore_operator(made, store)
        rows: list[Row] = [(False, key, 10 * call + i, i, None) for i in range(10) for key in "ab"]
        taken(operator, batch_of(rows, made), 10 * call + 9)
        operator.save()
        assert operator.state_size() == {"left": 0, "right": 0, "versions": 2}
    timers = [restore_operator(made, store).next_timers()]
    assert timers == [(None, None)]


def test_versions_end() -> None:
    made, store = planned(Case(lives=10)), MemoryLog()
    operator = restore_operator(made, store)
    rows: list[Row] = [(False, "a", 5, 1, None), (False, "b", 8, 1, None)]
    taken(operator, batch_of(rows, made), 8)
    operator.save()
    operator = restore_operator(made, store)
    assert operator.next_timers() == (14, None)
    taken(operator, None, 13)
    assert operator.state_size()["versions"] == 2
    taken(operator, None, 14)
    operator.save()
    operator = restore_operator(made, store)
    assert operator.state_size()["versions"] == 1
    assert operator.next_timers() == (17, None)
    taken(operator, None, 17)
    assert operator.state_size()["versions"] == 0


def test_late_rows_wait_for_the_next_watermark() -> None:
    made, store = planned(Case()), MemoryLog()
    operator = restore_operator(made, store)
    taken(operator, None, 20)
    taken(operator, batch_of([(True, "a", 5, 0, None)], made), None)
    operator.save()
    assert operator.next_timers() == (21, None)


# ---- the API


def test_nothing_runs_it_row_at_a_time() -> None:
    with pytest.raises(errors.UnsupportedQueryError, match="engine='reference' is not possible"):
        Case().outputs(*NOTHING, engine="reference").explain()


def keyed(name: str = "k", dtype: pa.DataType | None = None) -> gw.typing.KeyedStream:
    made = NOTHING[0].rename_columns(["seq", name, "ts", "v", "d"])
    if dtype is not None:
        made = made.set_column(1, name, pa.array([], dtype))
    return gw.stream(made).event_time("ts", STRICT).key_by(name)


def bad(value: Any) -> Any:
    """Return a value that is none of the type that is asked for."""
    return value


@pytest.mark.parametrize(
    ("build", "error", "text"),
    [
        (lambda: keyed().temporal_join(keyed(), "v"), errors.ColumnTypeError, "true or false"),
        (lambda: keyed().temporal_join(keyed(), "other"), errors.ColumnNotFoundError, "other"),
        (lambda: keyed().temporal_join(keyed(), bad(7)), errors.QueryError, "names a column"),
        (lambda: keyed().temporal_join(keyed(dtype=pa.int64())), errors.ColumnTypeError, "a key"),
        (
            lambda: keyed().temporal_join(bad(gw.stream(NOTHING[1]).event_time("ts", STRICT))),
            errors.QueryError, "a keyed one",
        ),
        (lambda: keyed().temporal_join(keyed()).valid_for("0 s"), errors.InvalidDurationError,
         "positive time"),
        (lambda: keyed().temporal_join(keyed()).valid_for("99999999 weeks"),
         errors.InvalidDurationError, "62 bits"),
        *(
            (lambda how=how: keyed().temporal_join(keyed()).select(["v"], ["v"], how=how),
             errors.QueryError, f"inner or left, got how='{how}'")
            for how in ("right", "full", "semi", "anti")
        ),
        (lambda: keyed().temporal_join(keyed()).select(), errors.QueryError, "choose a column"),
    ],
)  # fmt: skip
def test_mistakes(build: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        build()


def test_the_plan_says_it() -> None:
    made = planned(Case(has_deleted=True, lives=90_000_000))
    assert made.strategy is Strategy.TEMPORAL_JOIN
    assert made.query.describe()["join"] == (
        "left join, the version of the right side at the left time, unless it is deleted, "
        "valid for 1 min 30 s"
    )


def test_rejected_rows_have_no_column_of_ours() -> None:
    rows: list[Row] = [(False, "a", None, 1, True), (True, "a", None, 2, None)]
    tables = (table(rows, left=side) for side in (True, False))
    rejected = Case(has_deleted=True).outputs(*tables).rejected()
    assert not [name for name in rejected.column_names if name.startswith("__version")]
    assert Counter(rejected["is_left"].to_pylist()) == Counter([True, False])


class Ages(gw.functions.ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, context: Any) -> Any:
        age = None if right is None else context.timestamp - context.right_timestamp
        yield {"age": age}


def test_functions_see_pairs() -> None:
    rows: list[Row] = [(True, "a", 9, 1, None), (True, "b", 9, 1, None), (False, "a", 4, 1, None)]
    joined = (
        gw.stream(table(rows, left=True)).event_time("ts", STRICT).key_by("k")
        .temporal_join(gw.stream(table(rows, left=False)).event_time("ts", STRICT).key_by("k"), "d")
    )  # fmt: skip
    output = pa.schema([("age", pa.int64())])
    found = joined.process(Ages(), ["v"], ["v"], output=output, how="left")
    assert found.to_pydict() == {"k": ["a", "b"], "age": [5, None]}


def test_results_happen_at_the_left_time() -> None:
    rows: list[Row] = [(True, "a", 9, 1, None), (True, "a", 12, 2, None), (False, "a", 4, 3, None)]
    joined = Case().outputs(*(table(rows, left=side, instants=True) for side in (True, False)))
    windows = gw.stream_results(joined).key_by("k").window(gw.TumblingEventTimeWindows(5))
    found = windows.aggregate(n=gw.count(), most=gw.max("right_v"))
    assert found.select(["n", "most"]).to_pydict() == {"n": [1, 1], "most": [3, 3]}
