"""Filters of keys: what was put in is possible, of the rest little is taken for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from gpu_windows.errors import StateCorruptedError
from gpu_windows.operators.state import hashes
from gpu_windows.operators.state.hashes import build_filter, is_worth_reading, select_possible
from tests.examples import examples

Ints = NDArray[np.int64]


def random_hashes(rng: np.random.Generator, count: int) -> Ints:
    """Return some that one shard of sixteen has: their lower bits are the same."""
    return np.unique(rng.integers(-(2**63), 2**63, count) & ~np.int64(15))


def possible(parts: list[bytes], keys: Ints) -> list[int]:
    found: list[int] = select_possible(keys, len(parts), parts.__getitem__, "a filter").tolist()
    return found


@examples(100)
@given(
    st.sets(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=60),
    st.sets(st.integers(-(2**63), 2**63 - 1), max_size=60),
    st.sampled_from([1, 3, 16_384]),
)
def test_a_key_that_was_put_in_is_possible(mine: set[int], others: set[int], of_part: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hashes, "_KEYS", of_part)
        parts = build_filter(np.array(sorted(mine), np.int64))
        found = possible(parts, np.array(sorted(mine | others), np.int64))
    assert mine <= set(found) <= mine | others
    assert found == sorted(found)


@pytest.mark.parametrize("count", [1_000, 5_000, 50_000])
def test_one_in_twenty_of_other_keys_is_possible(count: int) -> None:
    rng = np.random.default_rng(count)
    keys = random_hashes(rng, count)
    parts = build_filter(keys)
    assert possible(parts, keys) == keys.tolist()
    others = np.setdiff1d(random_hashes(rng, 20_000), keys)
    taken = possible(parts, others)
    assert set(taken) <= set(others.tolist())
    assert 0.02 * len(others) < len(taken) < 0.08 * len(others)
    assert sum(map(len, parts)) < 0.8 * count + 1_000 * len(parts)


def test_a_filter_is_read_where_it_costs_less_than_blocks() -> None:
    keys = random_hashes(np.random.default_rng(3), 4 * hashes._KEYS)
    parts = len(build_filter(keys))
    assert parts == 4
    few = keys[: 8 * 16]
    assert is_worth_reading(few[:: len(few) // 4], parts, 16)
    assert not is_worth_reading(
        keys[:: len(keys) // 100], parts, 15
    )  # four parts, four blocks each
    assert not is_worth_reading(
        keys[: 8 * 16 + 1], parts, 16
    )  # each block has one that is possible
    assert is_worth_reading(keys[:2], parts, 4)
    assert not is_worth_reading(keys, 0, 1_000)


def test_a_damaged_filter() -> None:
    (part,) = build_filter(np.arange(100))
    damaged: Any = part[:-1] + bytes([part[-1] ^ 1])
    with pytest.raises(StateCorruptedError, match="a filter"):
        possible([damaged], np.arange(100))
