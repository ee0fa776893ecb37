"""Count windows put away between calls: nothing differs, and a call costs what it touches."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_windows.operators.base import Operator
from gpu_windows.operators.build import build_operator, restore_operator
from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.slices.count_table import COUNTED
from gpu_windows.operators.state.memory_log import MemoryLog
from gpu_windows.planning.kinds.window_plan import WindowPlan
from gpu_windows.planning.plan import ARRIVAL, Strategy
from gpu_windows.planning.planner import plan
from gpu_windows.rules import LONG_MAX
from gpu_windows.vocabulary.options import Engine, Options
from tests.examples import examples
from tests.lanes import quick
from tests.operators.slices.count_windows import count_window
from tests.operators.state.counting import Counting
from tests.operators.state.put_away import Step, take
from tests.operators.state.sliced import inputs
from tests.operators.state.tight import with_small_blocks
from tests.planning.queries import SCHEMA, rows_of


def planned(size: int, slide: int | None, engine: Engine = "auto") -> WindowPlan:
    made = count_window(size, slide, options=Options(device="cpu", engine=engine))
    return plan(made, bounded=False, spark=True)


def given_by(operator: Operator, step: Step) -> list[str]:
    """Return what an operator gives, in its order."""
    tables = [emission.results for emission in take(operator, step)]
    return [repr(rows_of(table.slice(i, 1))) for table in tables for i in range(len(table))]


@pytest.fixture
def small() -> Iterator[None]:
    """Have several blocks, and runs that become one."""
    with with_small_blocks():
        yield


@pytest.mark.usefixtures("small")
@examples(40)
@given(st.integers(1, 9), st.one_of(st.none(), st.integers(1, 9)), inputs())
def test_nothing_differs(size: int, slide: int | None, steps: list[Step]) -> None:
    made, store = planned(size, slide), MemoryLog()
    assert made.strategy is Strategy.COUNTS
    whole, reference = build_operator(made), build_operator(planned(size, slide, "reference"))
    for step in steps:
        operator = restore_operator(made, store)
        assert operator.next_timers() == (None, None)
        got = given_by(operator, step)
        operator.save()
        assert got == given_by(whole, step) == given_by(reference, step)
        held = operator.state_size()
        assert restore_operator(made, store).state_size() == held


def test_keys_of_one_hash_are_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KeyEncoder, "hashes", lambda self: np.zeros(self.count, np.int64))
    made, store, whole = planned(3, None), MemoryLog(), build_operator(planned(3, None))
    for number in range(12):
        step = table_of([number % 5, number % 3])
        operator = restore_operator(made, store)
        got = given_by(operator, step)
        operator.save()
        assert got == given_by(whole, step)


def table_of(parts: list[int]) -> pa.Table:
    """Return rows of some keys."""
    columns = {
        field.name: pa.array([None] * len(parts), field.type)
        for field in [*SCHEMA, pa.field(ARRIVAL, pa.int64())]
    }
    return pa.table({**columns, "part": pa.array(parts, pa.int32()), "i": pa.array(parts)})


@pytest.mark.parametrize("keys", quick([1_000, 50_000], 1_000))
def test_a_call_costs_what_it_touches(keys: int) -> None:
    made, store = planned(100, 10), Counting()
    touched = np.random.default_rng(1).integers(0, keys, (3, 50))
    for parts in ([*range(keys)], *touched.tolist()):
        operator = restore_operator(made, store)
        given_by(operator, table_of(parts))
        operator.save()
        store.forget_counts()
        store.reopen()
        written = store.counts["bytes_written"]
    operator = restore_operator(made, store)
    store.forget_counts()
    given_by(operator, table_of(touched[0].tolist()))
    assert 0 < store.counts["bytes_read"] <= 50 * 32_000
    assert written <= 64_000 + 4 * 50 * 200
    assert store.numbers(COUNTED, ["keys"]) == [keys]


def test_the_end_of_time_ends_no_count() -> None:
    made, store = planned(3, None), MemoryLog()
    for step, fired in ((table_of([1, 1]), 0), (LONG_MAX, 0), (table_of([1]), 1)):
        operator = restore_operator(made, store)
        assert len(given_by(operator, step)) == fired
        operator.save()
