"""Slices in a store: how many bytes and blobs they take, and how often an entry is looked at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_windows.operators.slices import blobs, stored
from gpu_windows.operators.slices.table import Entries
from gpu_windows.operators.state.store import MemoryStore
from gpu_windows.planning.planner import plan
from gpu_windows.rules import LONG_MAX
from gpu_windows.windows import TumblingEventTimeWindows
from tests.examples import examples
from tests.operators.state.noted import Noted, merged_early
from tests.operators.state.put_away import call, rows
from tests.query.queries import AGGREGATES, query


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


def written_by(calls: int, keys: Drawing) -> tuple[Noted, int, int, int]:
    """Run calls into one bucket; return the store, and bytes: written, read, most ever held."""
    planned, store, rng = plan(KEYED, bounded=False), Noted(), np.random.default_rng(calls)
    written = was_read = most = 0
    for number in range(calls):
        store.forget()
        sizes = {where: len(blob) for where, blob in store.blobs.items()}
        call(planned, store, of_keys(keys(rng, number)))
        assert store.was_read == store.removed  # by merging alone
        written += sum(store.written.values())
        was_read += sum(sizes["slices", blob] for blob in store.was_read)
        most = max(most, len(store.numbers))
    return store, written, was_read, most


@pytest.mark.parametrize("calls", [100, pytest.param(300, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("name", TOUCHED)
def test_bytes_grow_with_what_is_touched(
    name: str, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, written, was_read, most = written_by(calls, TOUCHED[name])
    monkeypatch.setattr(stored, "to_merge", lambda *_: 0)
    apart, touched, _, _ = written_by(calls, TOUCHED[name])
    assert written <= 4 * touched
    assert was_read <= 4 * touched
    assert most <= 7 * 4  # of entries up to 2 ** 20 there are six levels, but few of them at once
    planned = plan(KEYED, bounded=False)
    assert call(planned, store, LONG_MAX) == call(planned, apart, LONG_MAX)


@examples(200)
@given(st.lists(st.integers(1, 10**6), max_size=300), st.integers(1, 100))
def test_blobs_stay_few(calls: list[int], small: int) -> None:
    """Keys that never come again; levels never rise from older to newer blobs."""
    held: list[int] = []
    written = 0
    for new in calls:
        few = blobs.to_merge(held, new, small)
        held, merged = held[: len(held) - few], held[len(held) - few :]
        held.append(new + sum(merged))
        written += held[-1]
        levels = [blobs._level(each, small) for each in held]
        assert levels == sorted(levels, reverse=True)
        assert max(map(levels.count, levels)) < blobs.MOST_ALIKE
    if small == 1:
        assert written <= sum(calls) * (1 + blobs._level(sum(calls), small))


class Counted:
    """NumPy, for a module that is to count how many elements it hands over."""

    def __init__(self) -> None:
        self.elements = 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name)
        if isinstance(found, type) or not callable(found):
            return found

        def counted(*arguments: Any, **named: Any) -> Any:
            self.elements += sum(len(a) for a in arguments if isinstance(a, np.ndarray))
            return found(*arguments, **named)

        return counted


def test_a_call_looks_at_an_entry_as_often_however_many_buckets_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    planned = plan(query(TumblingEventTimeWindows(10)), bounded=False)

    def looked_at(buckets: int) -> int:
        """Return how many elements and entries are looked at while all buckets are written."""
        counted = Counted()

        def length(entries: Entries) -> int:
            counted.elements += 1
            return len(entries.codes)

        with monkeypatch.context() as patch, merged_early():
            for module in (stored, blobs):
                patch.setattr(module, "np", counted)
            patch.setattr(stored, "_ROWS_TOGETHER", 1 << 17)
            patch.setattr(Entries, "__len__", length)
            store = MemoryStore()
            for step in (rows(*range(0, 10 * buckets, 5)),) * 2:
                call(planned, store, step)
            assert len(store.blobs) == buckets + 1
        return counted.elements

    assert looked_at(320) < 12 * looked_at(40)
