"""Filters of keys: what was written may be there, of the rest little is taken for it."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_windows.operators.state import key_filters
from gpu_windows.operators.state.key_filters import KeyFilter
from tests.operators.state.counting import Counting


def hashes(rng: np.random.Generator, count: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return some that one shard of sixteen has: their lower bits are the same."""
    return np.unique(rng.integers(-(2**63), 2**63, count) & ~np.int64(15))


@pytest.mark.parametrize("count", [1, 7, 5_000, 50_000])
def test_keys_that_were_written_may_be_there(count: int) -> None:
    rng, store = np.random.default_rng(count), Counting()
    keys = hashes(rng, count)
    made = KeyFilter.write(store, "filters", 3, keys)
    assert sorted(store.blobs) == [("filters", 3 + part) for part in range(len(made.bytes))]
    assert made.may_have(store, keys).tolist() == keys.tolist()
    others = np.setdiff1d(hashes(rng, 10_000), keys)
    taken = made.may_have(store, others)
    assert set(taken.tolist()) <= set(others.tolist())
    assert len(taken) < 0.1 * len(others)
    assert sum(made.bytes) < 0.8 * count + 1_000 * len(made.bytes)
    made.remove(store)
    assert not store.blobs


def test_a_filter_is_asked_where_it_is_smaller_than_blocks() -> None:
    rng = np.random.default_rng(3)
    keys = hashes(rng, 4 * key_filters._KEYS)
    made = KeyFilter.write(Counting(), "filters", 0, keys)
    assert len(made.bytes) == 4
    few = keys[: 8 * 16]
    assert made.is_worth_it(few, 16)
    assert not made.is_worth_it(few, 15)
    assert not made.is_worth_it(keys[: 8 * 16 + 1], 16)  # each block has one that may be there
    assert made.is_worth_it(keys[:2], 4)
    assert not KeyFilter("filters", 0).is_worth_it(keys, 1_000)
