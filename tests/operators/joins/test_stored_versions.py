"""What a temporal join reads, writes and keeps: what a call touches, whatever else is stored."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gpu_windows.functions.two_inputs import SIDE, TIME
from gpu_windows.operators.build import build_operator, restore_operator
from gpu_windows.rules import LONG_MAX
from tests.operators.joins.interval_joins import seen
from tests.operators.joins.temporal_join import Case, planned
from tests.operators.state.counting import Counting

#: Keys that have a version; rows of a side in each of the calls after; and bytes that a call reads
#: or writes at most.
MANY, FEW, CALLS, MOST = 50_000, 5, 20, 200_000


def sides(left: Any, right: Any, ts: int) -> pa.Table:
    """Return rows of both sides with these keys, at a time: values are the keys."""
    keys = np.concatenate([left, right])
    is_left = np.arange(len(keys)) < len(left)
    return pa.table(
        {
            "k": pa.array([f"key {key}" for key in keys.tolist()], pa.string()),
            TIME: np.full(len(keys), ts),
            SIDE: is_left,
            "left_v": pa.array(keys, mask=~is_left),
            "right_v": pa.array(keys, mask=is_left),
            "__order_0": np.zeros(len(keys), np.int64),
        }
    )


def taken(operator: Any, rows: pa.Table, watermark: int) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for emission in (*operator.advance_watermark(watermark), *operator.process(rows)):
        found += seen(emission.results)
    return found


@pytest.mark.parametrize("lives", [None, MANY], ids=["for good", "that end"])
def test_a_call_reads_and_writes_what_it_touches(lives: int | None) -> None:
    made, store = planned(Case(lives=lives)), Counting()
    whole, random = build_operator(made), np.random.default_rng(7)
    given = 0
    for call in range(CALLS):
        keys = random.integers(0, MANY, (2, FEW)) if call else (np.arange(0), np.arange(MANY))
        rows = sides(keys[0], keys[1], call)
        operator = restore_operator(made, store)
        store.forget_counts()
        found = taken(operator, rows, call - 1)
        operator.save()
        read = store.counts["bytes_read"]
        store.forget_counts()
        store.reopen()
        assert found == taken(whole, rows, call - 1)
        given += found.total()
        if call > 1:  # the first rows are versions then
            assert read <= MOST
            assert store.counts["bytes_written"] <= MOST
    assert given == FEW * (CALLS - 2)
    operator = restore_operator(made, store)
    assert operator.state_size()["versions"] == MANY
    taken(operator, rows.slice(0, 0), LONG_MAX)
    operator.save()
    store.reopen()
    assert store.table_names == []


def test_a_key_that_is_updated_all_the_time_takes_no_room() -> None:
    made, store = planned(Case()), Counting()
    updates, sizes = 20_000, []
    for call in range(20):
        rows = sides([0], np.zeros(updates, np.int64), call)
        operator = restore_operator(made, store)
        assert taken(operator, rows, call - 1).total() == min(call, 1)
        operator.save()
        assert operator.state_size() == {"left": 1, "right": updates, "versions": min(call, 1)}
        store.reopen()
        sizes.append(store.live_size)
        assert store.counts["bytes_read"] + store.counts["bytes_written"] <= 100 * updates
        store.forget_counts()
    assert sizes[-1] <= 1.1 * sizes[1]
    operator = restore_operator(made, store)
    taken(operator, rows.slice(0, 0), 20)
    operator.save()
    store.reopen()
    assert store.live_size < 10_000


def test_a_log_says_what_it_has() -> None:
    made, store = planned(Case(lives=100)), Counting()
    operator = restore_operator(made, store)
    for ts in (5, 6):
        taken(operator, sides(np.arange(9), np.arange(ts * 4), ts), ts - 1)
    operator.save()
    store.reopen()
    assert store.numbers("left at end", ["rows"]) == [9]
    assert store.numbers("right at end", ["rows"]) == [24]
    assert store.numbers("versions", ["keys"]) == [20]
    assert sum(run.rows for run in store.runs("versions at")) == 20
