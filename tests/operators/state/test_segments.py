"""Rows that are appended to a store by their slices: written, read, merged and forgotten."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pytest

from gpu_windows.operators.state import segments
from gpu_windows.operators.state.segments import Segments
from gpu_windows.operators.state.store import MemoryStore

KIND, SLICE = "waiting", "slice"


class Counting(MemoryStore):
    """A store that counts calls and bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def read(self, kind: str, bucket: int) -> bytes | None:
        found = super().read(kind, bucket)
        self.counts.update(reads=1, bytes_read=len(found or b""))
        return found

    def write(self, kind: str, bucket: int, blob: bytes, *, held: int | None = None) -> None:
        assert held == len(self.blobs.get((kind, bucket), b""))
        self.counts.update(writes=1, bytes_written=len(blob))
        super().write(kind, bucket, blob, held=held)

    def remove(self, kind: str, bucket: int, *, held: int | None = None) -> None:
        assert held == len(self.blobs[kind, bucket])
        super().remove(kind, bucket, held=held)


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
    first.append(rows([3, -1, 4, 3]), 2)
    assert dict(store.counts.items()) == {
        "writes": 3,
        "bytes_written": store.counts["bytes_written"],
    }
    again = opened(store, first.index())
    again.append(rows([3], 4), 2)
    assert (store.counts["writes"], store.counts["reads"]) == (4, 0)
    assert content(again) == [(-1, 1), (3, 0), (3, 3), (3, 4), (4, 2)]
    least, greatest = again.slices
    assert sorted(zip(least.tolist(), greatest.tolist(), strict=True)) == [
        (-1, -1), (3, 3), (3, 3), (4, 4)
    ]  # fmt: skip


def test_what_is_over_is_forgotten_unread() -> None:
    store = Counting()
    found = opened(store)
    found.append(rows([0, 1, 2, 3]), 2)
    found.remove(found.slices[1] < 2)
    assert (len(found), len(store.blobs), store.counts["reads"]) == (2, 1, 0)
    found.append(rows([9], 4), 2)  # its number is free again, or is not: the index knows
    assert content(opened(store, found.index())) == [(2, 2), (3, 3), (9, 4)]


@pytest.mark.parametrize("calls", [100, 300])
def test_few_segments_are_kept_and_a_row_is_written_few_times(calls: int) -> None:
    store, index = Counting(), Segments.nothing()
    rng, alone = np.random.default_rng(7), 0
    for call in range(calls):
        found = opened(store, index)
        came = rows([0] * 200, 200 * call)
        came = came.append_column("value", pa.array(rng.random(200)))
        apart = Counting()
        opened(apart).append(came, 1)
        alone += apart.counts["bytes_written"]
        found.append(came, 1)
        index = found.index()
    assert len(found) == 200 * calls
    assert [row for _, row in content(found)] == list(range(200 * calls))
    assert len(index) <= 2 * 16
    assert store.counts["bytes_written"] <= 3 * alone


def test_a_large_segment_is_cut_and_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "_MOST_BYTES", 1 << 10)
    monkeypatch.setattr(segments, "_LARGE", 1)
    store, found = Counting(), None
    for call in range(20):
        found = opened(store, None if found is None else found.index())
        found.append(rows([5] * 100, 100 * call), 1)
    assert found is not None
    assert store.counts["reads"] == 0
    assert len(found.index()) == 20 * 2
    assert len(content(found)) == 2_000


def test_merged_segments_tell_of_all_their_slices() -> None:
    store = Counting()
    found = opened(store)
    for call in range(16):
        found.append(rows([call], call), 100)
    (blob,) = found.index().to_pylist()
    assert (blob["least"], blob["greatest"], blob["rows"], blob["level"]) == (0, 15, 16, 1)
    (table,) = found.load(np.ones(1, np.bool_))
    assert table.schema.metadata == described(0, 15)
    assert len(store.blobs) == 1
