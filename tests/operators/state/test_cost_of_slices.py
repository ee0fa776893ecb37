"""Slices in a log: how many bytes and files they take, and what a merge reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_windows.operators.slices.stored import SLICES
from gpu_windows.operators.state import state_file_writer
from gpu_windows.operators.state.state_file_writer import count_to_merge, size_class
from gpu_windows.planning.planner import plan
from gpu_windows.rules import LONG_MAX
from gpu_windows.vocabulary.windows import TumblingEventTimeWindows
from tests.examples import examples
from tests.operators.state.counting import Counting
from tests.operators.state.put_away import call
from tests.planning.queries import AGGREGATES, query


def of_keys(keys: Any) -> pa.Table:
    count = len(keys)
    named = {"key": pa.array(keys), "ts": pa.array(np.zeros(count, np.int64))}
    return pa.table({**named, "f": pa.array(np.arange(count) % 97 / 4)})


KEYED = query(
    TumblingEventTimeWindows(10),
    pa.schema([("key", pa.int64()), ("ts", pa.int64()), ("f", pa.float64())]),
    keys=("key",),
    aggregates={name: AGGREGATES[name] for name in ("sum_f", "max_f", "rows")},
)


#: The keys of a call.
Drawing = Callable[[np.random.Generator, int], Any]


#: Which keys come in a call, out of a thousand times as many or again and again.
TOUCHED: dict[str, Drawing] = {
    "one": lambda rng, call: [7],
    "hot": lambda rng, call: np.arange(100),
    "random": lambda rng, call: rng.integers(0, 1_000_000, 100),
    "some of few": lambda rng, call: rng.integers(0, 1_000, 100),
    "all": lambda rng, call: np.arange(5_000),
    "few and many in turns": lambda rng, call: rng.integers(0, 10**6, (1, 3_000)[call % 2]),
    "any number": lambda rng, call: rng.integers(0, 10**6, int(10 ** rng.uniform(0, 3.5))),
    "fewer and fewer": lambda rng, call: rng.integers(0, 10**6, 1 + 3_000 // (call % 16 + 1)),
}


def run_calls(calls: int, keys: Drawing) -> tuple[Counting, int]:
    """Run calls into one slice, none of which reads; return the log, and the most files."""
    planned, store, rng = plan(KEYED, bounded=False), Counting(), np.random.default_rng(calls)
    most = 0
    for number in range(calls):
        before = store.counts["reads"]
        call(planned, store, of_keys(keys(rng, number)))
        read = store.counts["reads"] - before
        store.reopen()
        most = max(most, len(store.live_files))
        if number % state_file_writer.MERGE_FANIN == 1:
            assert read == 0
    return store, most


@pytest.mark.parametrize("calls", [100, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", TOUCHED)
def test_bytes_grow_with_what_is_touched(
    name: str, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, most = run_calls(calls, TOUCHED[name])
    for constant in ("MERGE_FANIN", "_MAX_SEGMENTS"):
        monkeypatch.setattr(state_file_writer, constant, 1 << 30)
    apart, _ = run_calls(calls, TOUCHED[name])
    assert len(apart.runs(SLICES)) == calls
    assert store.counts["bytes_written"] <= 6 * apart.counts["bytes_written"]
    assert store.counts["bytes_read"] <= 6 * apart.counts["bytes_written"]
    assert most <= 7 * (size_class(store.live_size) + 1) + 1
    planned = plan(KEYED, bounded=False)
    monkeypatch.undo()
    assert call(planned, store, LONG_MAX) == call(planned, apart, LONG_MAX)


@examples(200)
@given(st.lists(st.integers(1, 10**9), max_size=300))
def test_segments_stay_few(calls: list[int]) -> None:
    """Keys that never come again: of a size there are few that no larger segment has followed."""
    sizes: list[int] = []
    written = highest = 0
    for new in calls:
        classes = [*map(size_class, sizes), size_class(new)]
        count = count_to_merge(classes)
        assert count == 0 or count >= state_file_writer.MERGE_FANIN
        left = len(classes) - max(count, 1)
        sizes = [*sizes[:left], sum(sizes[left:]) + new]
        written += sizes[-1]
        classes = [*map(size_class, sizes)]
        highest = max([highest, *classes])
        for each in range(highest + 1):
            assert _list_up_to(classes, each).count(each) < state_file_writer.MERGE_FANIN
    assert len(sizes) < state_file_writer.MERGE_FANIN ** (highest + 1)
    smallest = 1 << state_file_writer._FIRST_CLASS_BITS
    assert written <= sum(calls) * (highest + 1) + smallest * len(calls) / (
        state_file_writer.MERGE_FANIN - 1
    )


def _list_up_to(classes: list[int], largest: int) -> list[int]:
    """Return the newest, those that follow the last one that is larger."""
    larger = [place for place, each in enumerate(classes) if each > largest]
    return classes[larger[-1] + 1 :] if larger else classes
