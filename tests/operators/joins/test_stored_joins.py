"""What an interval join reads and writes: what a call touches, whatever else is stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gpu_windows.functions.two_inputs import SIDE, TIME
from gpu_windows.operators.build import build_operator, restore_operator
from gpu_windows.operators.state import state_file_writer
from gpu_windows.planning.plan import Plan
from gpu_windows.planning.planner import plan
from gpu_windows.rules import LONG_MAX
from tests.operators.joins.interval_joins import NEAREST, in_time, seen
from tests.operators.joins.rows import HOW, table
from tests.operators.state.counting import Counting
from tests.operators.state.tight import with_small_blocks

JOINS = [*HOW, *(f"nearest {direction}" for direction in NEAREST)]
#: Rows of each side that are there, a time apart; and rows of a side in each of the calls after.
MANY, APART, FEW, CALLS = 50_000, 10, 5, 20
#: Bytes that a call reads or writes at most: of a head, of blocks of some runs of both sides.
MOST = 200_000


def planned(join: str) -> Plan:
    how, _, direction = join.partition(" ")
    how = "left" if direction else how
    outputs = in_time(table([]), table([]), (-3, 3), how, nearest=direction or None)
    return plan(outputs.plan.query, bounded=False)


def sides(keys: Any, left: Any, right: Any) -> pa.Table:
    """Return rows of both sides at some times: their values are their times."""
    ts = np.concatenate([left, right])
    is_left = np.arange(len(ts)) < len(left)
    return pa.table(
        {
            "k": pa.array([f"key {key}" for key in keys]),
            TIME: ts,
            SIDE: is_left,
            "left_v": pa.array(ts, mask=~is_left),
            "right_v": pa.array(ts, mask=is_left),
        }
    )


def first_call(keys: int) -> pa.Table:
    """Return rows that have no partner."""
    ts = np.arange(MANY) * APART
    return sides(np.tile(np.arange(MANY) % keys, 2), ts, ts + APART // 2)


def next_calls(keys: int) -> Iterator[pa.Table]:
    """Yield calls with partners of some of them, near in time or all over it."""
    random = np.random.default_rng(7)
    for call in range(CALLS):
        rows = MANY // 2 + call + np.arange(FEW)
        if call % 2:
            rows = random.integers(MANY // 2, MANY, FEW)
        ts = rows * APART
        yield sides(np.tile(rows % keys, 2), ts + APART // 2 - 1, ts + 1)


def taken(operator: Any, rows: pa.Table, watermark: int) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for emission in (*operator.advance_watermark(watermark), *operator.process(rows)):
        found += seen(emission.results)
    return found


@pytest.mark.parametrize("keys", [1, MANY], ids=["one key", "many keys"])
@pytest.mark.parametrize("join", JOINS)
def test_a_call_reads_and_writes_what_it_touches(join: str, keys: int) -> None:
    made, store = planned(join), Counting()
    whole = build_operator(made)
    given = 0
    for call, rows in enumerate((first_call(keys), *next_calls(keys))):
        watermark = call * APART * FEW  # a few rows are over each time
        operator = restore_operator(made, store)
        store.forget_counts()
        found = taken(operator, rows, watermark)
        operator.save()
        read = store.counts["bytes_read"]
        store.forget_counts()
        store.reopen()
        assert found == taken(whole, rows, watermark)
        if call:
            given += found.total()
            assert read <= MOST
            assert store.counts["bytes_written"] <= 64_000
    assert given > CALLS
    end = restore_operator(made, store)
    nothing = rows.slice(0, 0)
    assert taken(end, nothing, LONG_MAX) == taken(whole, nothing, LONG_MAX)
    end.save()
    store.reopen()
    assert store.table_names == []


def test_that_a_row_has_met_is_noted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_file_writer, "MERGE_FANIN", 100)
    made, store, none = planned("full"), Counting(), np.empty(0, np.int64)
    for call in range(8):
        operator = restore_operator(made, store)
        ts = np.array([call % 3])
        taken(operator, sides([0], *((ts, none) if call == 0 else (none, ts))), -10)
        operator.save()
    store.reopen()
    assert [(run.rows, run.markers) for run in store.runs("left")] == [(1, 0), (0, 1)]
    assert [(run.rows, run.markers) for run in store.runs("left at end")] == [(1, 0), (0, 1)]
    assert [(run.rows, run.markers) for run in store.runs("right")] == [(1, 0)] * 7


def test_a_log_says_what_it_has() -> None:
    made, store, none = planned("full"), Counting(), np.empty(0, np.int64)
    with with_small_blocks(together=8):
        for ts in (np.arange(50), np.arange(20, 60)):
            operator = restore_operator(made, store)
            ours, its = (ts, none) if ts[0] == 0 else (none, ts)
            taken(operator, sides(ts, ours, its), -1)
            operator.save()
        store.reopen()
    names = ("left", "right", "left at end", "right at end")
    rows = {name: store.numbers(name, ["rows", "start", "end"]) for name in names}
    assert rows == {
        "left": [50, 0, 50],
        "right": [40, 20, 60],
        "left at end": [50, 0, 50],
        "right at end": [10, 50, 60],
    }
    assert sum(run.markers for run in store.runs("left")) == 30  # so many rows have met
