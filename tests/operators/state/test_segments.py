"""Rows that are appended to a store by their slices: written, read, merged and forgotten."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pytest

from gpu_windows.operators.state import segments
from gpu_windows.operators.state.segments import Segments
from tests.operators.state.counting import Counting

KIND, SLICE, OPEN = "waiting", "slice", -100


def described(least: int, greatest: int) -> Mapping[bytes, bytes]:
    return {b"slices": f"{least} {greatest}".encode()}


def opened(store: Counting, index: pa.Table | None = None) -> Segments:
    found = Segments.nothing() if index is None else index
    return Segments(store, KIND, found, SLICE, described)


def rows(slices: list[int], first: int = 0) -> pa.Table:
    numbers = np.arange(first, first + len(slices))
    return pa.table({SLICE: pa.array(slices, pa.int64()), "row": numbers})


def content(found: Segments) -> list[tuple[int, int]]:
    """Return the slice and the number of every row."""
    tables = found.load(np.ones(len(found.slices[0]), np.bool_))
    pairs = (zip(t[SLICE].to_pylist(), t["row"].to_pylist(), strict=True) for t in tables)
    return sorted(pair for of_table in pairs for pair in of_table)


def test_a_call_writes_what_came_and_reads_nothing() -> None:
    store = Counting()
    first = opened(store)
    first.append(rows([3, -1, 4, 3]), OPEN)
    again = opened(store, first.index())
    again.append(rows([3], 4), OPEN)
    assert (store.counts["writes"], store.counts["reads"]) == (2, 0)
    assert content(again) == [(-1, 1), (3, 0), (3, 3), (3, 4), (4, 2)]
    least, greatest = again.slices
    assert (least.tolist(), greatest.tolist()) == ([-1, 3], [4, 3])


def test_what_is_over_is_forgotten_unread() -> None:
    store = Counting()
    found = opened(store)
    found.append(rows([0, 1]), OPEN)
    found.append(rows([2, 3], 2), OPEN)
    found.remove(found.slices[1] < 2)
    assert (len(found), len(store.blobs), store.counts["reads"]) == (2, 1, 0)
    found.append(rows([9], 4), OPEN)
    assert content(opened(store, found.index())) == [(2, 2), (3, 3), (9, 4)]


@pytest.mark.parametrize("calls", [100, 300])
@pytest.mark.parametrize("slices", [1, 1_000])
def test_few_segments_are_kept_and_a_row_is_written_few_times(calls: int, slices: int) -> None:
    store, index = Counting(), Segments.nothing()
    rng, alone = np.random.default_rng(7), 0
    for call in range(calls):
        found = opened(store, index)
        came = rows((np.arange(200) % slices).tolist(), 200 * call)
        came = came.append_column("value", pa.array(rng.random(200)))
        apart = Counting()
        opened(apart).append(came, OPEN)
        alone += apart.counts["bytes_written"]
        found.append(came, OPEN)
        index = found.index()
    assert len(found) == 200 * calls
    assert sorted(row for _, row in content(found)) == list(range(200 * calls))
    assert len(index) <= 8 * 3 + 8
    assert store.counts["bytes_written"] <= 4 * alone
    assert store.counts["writes"] <= 2 * calls


def test_a_large_segment_is_cut_by_slices_and_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "_LARGEST", 1 << 10)
    monkeypatch.setattr(segments, "_LARGE", 1)
    store, index = Counting(), Segments.nothing()
    for call in range(20):
        found = opened(store, index)
        found.append(rows([7, 5] * 50, 100 * call), OPEN)
        index = found.index()
    assert store.counts["reads"] == 0
    assert len(index) == 20 * 2
    assert {(each["least"], each["greatest"]) for each in index.to_pylist()} <= {
        (5, 5),
        (5, 7),
        (7, 7),
    }
    assert len(content(opened(store, index))) == 2_000


def test_what_is_merged_leaves_out_what_is_over() -> None:
    store = Counting()
    found = opened(store)
    for call in range(8):
        found.append(rows([call], call), 3 if call == 7 else OPEN)
    (blob,) = found.index().to_pylist()
    assert (blob["least"], blob["greatest"], blob["rows"], blob["level"]) == (3, 7, 5, 1)
    (table,) = found.load(np.ones(1, np.bool_))
    assert table.schema.metadata == described(3, 7)
    assert len(store.blobs) == 1


def test_a_column_may_be_null_later() -> None:
    store = Counting()
    found = opened(store)
    for call in range(8):
        came = rows([call], call)
        field = came.schema.field("row").with_nullable(call % 2 == 0)
        found.append(came.cast(came.schema.set(1, field)), OPEN)
    assert len(content(found)) == 8


def test_nothing_is_appended() -> None:
    store = Counting()
    found = opened(store)
    found.append(rows([]), OPEN)
    assert (len(found), store.blobs) == (0, {})


def test_what_is_large_is_not_written_again_for_what_is_small() -> None:
    store = Counting()
    found = opened(store)
    found.append(rows([1] * 300_000), OPEN)
    written = store.counts["bytes_written"]
    for number in range(100):
        found.append(rows([2] * 100, 300_000 + 100 * number), OPEN)
    assert store.counts["bytes_written"] - written < written
    assert len(found) == len(content(found)) == 310_000
