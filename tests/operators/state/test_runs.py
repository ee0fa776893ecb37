"""Entries of keys in runs: what is found is what was saved last, whatever was merged meanwhile."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_windows.operators.state import runs, tiers
from gpu_windows.operators.state.entries import LISTS, Entries
from gpu_windows.operators.state.run_index import Kinds
from gpu_windows.operators.state.runs import HASH, TIMERS, KeyRuns
from gpu_windows.rules import LONG_MAX
from tests.examples import examples
from tests.operators.state.counting import Counting

KINDS = Kinds("blocks", "rows", ("event", "processing"))
#: Of an entry: its value, its timers, the rows that it keeps.
Entry = tuple[int, int, int, tuple[int, ...]]


def spread(key: int) -> int:
    """Return a hash: of all 64 bits, as those of keys are."""
    return int(np.uint64(key * 0x9E3779B97F4A7C15 % 2**64).astype(np.int64))


def entries_of(found: dict[int, list[Entry]]) -> Entries:
    pairs = [(spread(key), entry) for key, entries in found.items() for entry in entries]
    kept = [row for _, entry in pairs for row in entry[3]]
    begins = np.cumsum([0, *(len(entry[3]) for _, entry in pairs)])
    columns: dict[str, Any] = {
        HASH: pa.array([key for key, _ in pairs], pa.int64()),
        **{n: pa.array([e[i + 1] for _, e in pairs], pa.int64()) for i, n in enumerate(TIMERS)},
        "value": pa.array([entry[0] for _, entry in pairs], pa.int64()),
        LISTS: pa.LargeListArray.from_arrays(begins, pa.array(np.arange(len(kept)))),
    }
    rows = pa.table({"row": pa.array(kept, pa.int64())}) if kept else None
    return Entries(pa.table(columns), rows)


def told(found: Entries | None) -> dict[int, list[Entry]]:
    """Return entries by hash."""
    if found is None:
        return {}
    rows = [] if found.kept is None else found.kept["row"].to_pylist()
    by_key: dict[int, list[Entry]] = {}
    for each in found.table.to_pylist():
        kept = tuple(rows[place] for place in each[LISTS])
        entry = (each["value"], each[TIMERS[0]], each[TIMERS[1]], kept)
        by_key.setdefault(each[HASH], []).append(entry)
    return by_key


def by_hash(model: dict[int, list[Entry]]) -> dict[int, list[Entry]]:
    return {spread(key): entries for key, entries in model.items() if entries}


times = st.sampled_from([3, 5, 8, 13, LONG_MAX])
entry = st.tuples(
    st.integers(0, 9), times, times, st.lists(st.integers(0, 99), max_size=3).map(tuple)
)
calls = st.lists(
    st.dictionaries(st.integers(0, 12), st.lists(entry, max_size=2), min_size=1), max_size=25
)


@examples(150)
@given(
    calls,
    st.integers(2, 4),
    st.sampled_from([1, 500, 12_000]),
    st.sampled_from([0, 3, 4_096]),
    st.integers(1, 4),
)
def test_what_was_saved_last_is_found(
    changes: list[dict[int, list[Entry]]], together: int, block: int, slack: int, often: int
) -> None:
    store, index, count = Counting(), KeyRuns.nothing(), 0
    model: dict[int, list[Entry]] = {}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("_BLOCK_BYTES", block), ("_SLACK", slack), ("_OFTEN", often)):
            patch.setattr(runs, name, value)
        for name, value in (("TOGETHER", together), ("SMALL", 2)):
            patch.setattr(tiers, name, value)
        for number, change in enumerate(changes):
            held = KeyRuns(store, KINDS, index, count)
            keys = np.unique([spread(key) for key in change])
            found = held.find(keys)
            assert told(found) == by_hash({k: model.get(k, []) for k in change})
            known = np.unique(list(told(found))).astype(np.int64)
            held.save(entries_of(change), keys, known)
            model |= change
            index, count = held.index(), held.keys
            assert count == len(by_hash(model))
            assert told(KeyRuns(store, KINDS, index, count).everything()) == by_hash(model)
            assert len(index) < 3 * together + 2, number


@pytest.mark.parametrize("which", [0, 1])
def test_a_time_is_told_once_by_each_run(which: int) -> None:
    store = Counting()
    held = KeyRuns(store, KINDS, KeyRuns.nothing(), 0)
    none = np.empty(0, np.int64)

    def due(until: int) -> list[int]:
        nonlocal held
        found = held.take_due(until, in_processing_time=bool(which))
        held = KeyRuns(store, KINDS, held.index(), held.keys)
        return sorted(found.tolist())

    at = [(5, LONG_MAX), (3, LONG_MAX), (9, LONG_MAX), (LONG_MAX, LONG_MAX)]
    waits: dict[int, list[Entry]] = {
        key: [(0, *(pair if which == 0 else pair[::-1]), ())] for key, pair in enumerate(at)
    }
    held.save(entries_of(waits), np.unique([spread(key) for key in waits]), none)
    assert held.next_timers()[which] == 3
    assert due(2) == []
    assert due(5) == sorted([spread(0), spread(1)])
    assert due(5) == []
    assert held.next_timers()[which] == 9
    assert due(LONG_MAX - 1) == [spread(2)]
    assert held.next_timers() == (LONG_MAX, LONG_MAX)


def test_a_key_that_had_and_has_nothing_leaves_nothing() -> None:
    store = Counting()
    held = KeyRuns(store, KINDS, KeyRuns.nothing(), 0)
    none = np.empty(0, np.int64)
    held.save(entries_of({1: [(0, 1, 1, ())]}), np.array([spread(1)]), none)
    before = dict(store.blobs)
    held.save(entries_of({}), np.array([spread(2)]), none)
    assert store.blobs == before


def wide(keys: np.ndarray[Any, Any], rng: np.random.Generator) -> Entries:
    """Return an entry of each key, of some 60 bytes."""
    hashes = keys.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    values = {f"v{i}": rng.integers(0, 1 << 40, len(keys)) for i in range(6)}
    never = np.full(len(keys), LONG_MAX)
    timers = {TIMERS[0]: rng.integers(0, 1 << 40, len(keys)), TIMERS[1]: never}
    return Entries(pa.table({HASH: hashes.astype(np.int64), **timers, **values}))


@pytest.mark.parametrize(
    ("total", "touched"),
    [(20_000, 100), (100, 100), pytest.param(20_000, 20_000, marks=pytest.mark.thorough)],
)
def test_cost_is_that_of_what_is_touched(total: int, touched: int) -> None:
    store, rng = Counting(), np.random.default_rng(3)
    held = KeyRuns(store, KINDS, KeyRuns.nothing(), 0)
    whole = wide(np.arange(total), rng)
    held.save(whole, np.unique(whole.table[HASH].to_numpy()), np.empty(0, np.int64))
    store.counts.clear()
    alone = Counting()
    for _ in range(100):
        made = wide(np.sort(rng.choice(total, touched, replace=False)), rng)
        keys = np.unique(made.table[HASH].to_numpy())
        held = KeyRuns(store, KINDS, held.index(), held.keys)
        before = store.counts["reads"]
        assert held.find(keys) is not None
        blocks = np.minimum(held.index()["blocks"].to_numpy(), touched)
        assert store.counts["reads"] - before <= blocks.sum()
        held.save(made, keys, keys)
        KeyRuns(alone, KINDS, KeyRuns.nothing(), 0).save(made, keys, keys[:0])
        alone.blobs.clear()
    assert store.counts["bytes_written"] < 4 * alone.counts["bytes_written"]
    assert held.keys == total


def test_runs_that_do_not_know_a_key_are_hardly_read() -> None:
    """Filters say which they are: so keys of the oldest run are no dearer than of the newest."""
    store, rng = Counting(), np.random.default_rng(3)
    held = KeyRuns(store, KINDS, KeyRuns.nothing(), 0)
    edges = [0, 40_000, 45_000, 50_000]
    for begin, end in pairwise(edges):
        made = wide(np.arange(begin, end), rng)
        keys = np.unique(made.table[HASH].to_numpy())
        assert held.find(keys) is None
        held = KeyRuns(store, KINDS, held.index(), held.keys)
        held.save(made, keys, keys[:0])
    kinds = Counter(kind for kind, _ in store.blobs)
    assert len(held.index()) == 3
    assert kinds["blocks filters"] == 5  # of 16,384 keys each
    for _ in range(3):
        chosen = wide(np.sort(rng.choice(edges[-1], 100, replace=False)), rng)
        store.counts.clear()
        found = held.find(chosen.table[HASH].to_numpy())
        assert found is not None
        assert len(found) == 100
        assert store.counts["reads"] < 100 + 2 + 20  # a block of each, filters, blocks in vain
    store.counts.clear()
    assert held.find(wide(edges[-1] + np.arange(100), rng).table[HASH].to_numpy()) is None
    assert store.counts["reads"] < 5 + 40
    held.clear()
    assert not store.blobs


def test_blocks_are_large_while_calls_touch_most_keys() -> None:
    """A store takes as long for a small one; they are small again as soon as few are touched."""
    store, rng, total = Counting(), np.random.default_rng(3), 20_000
    held = KeyRuns(store, KINDS, KeyRuns.nothing(), 0)

    def touch(count: int) -> tuple[int, int]:
        """Change so many keys; return how many blobs there are then, and what was read."""
        nonlocal held
        held = KeyRuns(store, KINDS, held.index(), held.keys)
        made = wide(np.sort(rng.choice(total, count, replace=False)), rng)
        keys = np.unique(made.table[HASH].to_numpy())
        before = store.counts["bytes_read"]
        known = np.empty(0, np.int64) if held.find(keys) is None else keys
        read = store.counts["bytes_read"] - before
        held.save(made, keys, known)
        assert held.keys == total
        return len(store.blobs), read

    small, _ = touch(total)
    large = [touch(total - 100 * number)[0] for number in range(6)]
    assert large[-1] * 10 < large[0] <= small + 2
    again, _ = touch(50)
    assert again * 2 > small
    assert touch(50)[1] < 50 * 16_384 + 65_536
