"""What crosses a shuffle: shards by value, blobs, and shards run one after the other."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_windows.operators.counters import Counters
from gpu_windows.operators.slices.partial_stage import PartialStage
from gpu_windows.options import Options
from gpu_windows.planning.planner import plan
from gpu_windows.runners import local
from gpu_windows.windows import SlidingEventTimeWindows
from tests.cost import cpu_seconds
from tests.examples import examples
from tests.operators.columns.key_columns import COLUMNS
from tests.operators.slices.tasks import with_arrival
from tests.query.queries import assigners, query, rows_of, tables

workers = pytest.importorskip("gpu_windows.spark_glue.workers")
packing = pytest.importorskip("gpu_windows.spark_glue.packing")


@examples(40)
@given(assigners(), tables(), st.integers(1, 9), st.integers(1, 3))
def test_packed_partials_of_several_tasks_give_what_one_run_gives(
    assigner: Any, table: pa.Table, shards: int, tasks: int
) -> None:
    planned = plan(query(assigner, options=Options(device="cpu", shards=shards)), bounded=True)
    rows = with_arrival(table)
    packed: list[tuple[int, bytes]] = []
    for task in range(tasks):
        part = rows.take(pa.array(np.arange(task, len(rows), tasks)))
        stage = PartialStage(planned)
        for batch in packing.pack(planned, stage.run(part.to_batches())):
            packed += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    packed.sort(key=lambda row: row[0])
    batch = pa.record_batch(
        [
            pa.array([s for s, _ in packed], pa.int64()),
            pa.array([b for _, b in packed], pa.binary()),
        ],
        schema=packing.PACKED,
    )
    found = pa.Table.from_batches(list(workers.RunShards(planned, packed=True)([batch])))
    results = found.filter(pa.compute.is_null(found.column(workers.COUNTERS)))
    whole = local.run(planned, table)
    assert rows_of(results.drop_columns([*workers.TAGS])) == rows_of(whole.results)
    counters = found.column(workers.COUNTERS).drop_null().to_pylist()
    assert Counters(*(sum(c) for c in zip(*counters, strict=True))) == whole.counters


@examples(60)
@given(st.lists(st.integers(0, 5_000), max_size=60), st.sampled_from([1, 700, 4_096, 20_000]))
def test_blobs_have_few_bytes_or_one_row(lengths: list[int], most: int) -> None:
    table = pa.table({"text": ["x" * length for length in lengths], "n": range(len(lengths))})
    packed = list(packing.to_blobs(table, packing.Room(most)))
    found = [packing.from_ipc(blob) for blob in packed]
    assert all(
        len(blob) <= most or len(part) == 1 for blob, part in zip(packed, found, strict=True)
    )
    assert [row for part in found for row in part.to_pylist()] == table.to_pylist()


def test_a_table_is_not_cut_more_than_need_be() -> None:
    table = pa.table({"n": np.arange(1 << 20)})
    packed = list(packing.to_blobs(table, packing.Room(1 << 16)))
    assert len(packed) < 1.3 * table.nbytes / (1 << 16)
    assert max(map(len, packed)) <= 1 << 16


@pytest.mark.parametrize("shards", [1, 7, 300, 1 << 16])
def test_every_row_reaches_its_shard(shards: int) -> None:
    planned, table = plan_of(shards), keyed(3_000)
    (packed,) = packing.pack(planned, [table], most=1 << 20)
    found = packed.column(0).to_pylist()
    assert found == sorted(set(found))
    places = {n: i for i, n in enumerate(table["i"].to_pylist())}
    expected = packing.shards_of(planned, table)
    for shard, blob in zip(found, packed.column(1), strict=True):
        rows = [places[n] for n in packing.from_ipc(blob.as_buffer())["i"].to_pylist()]
        assert rows == np.flatnonzero(expected == shard).tolist()
    (piece,) = packing.unpack([packed], 1 << 20)
    assert (piece.first, piece.last, len(piece.rows)) == (found[0], found[-1], 3_000)


def test_the_first_blobs_for_a_shard_are_large() -> None:
    planned, table, most, large = plan_of(3), keyed(60_000), 1 << 12, 1 << 20
    batches = list(packing.pack(planned, [table] * 4, most=most, large=large))
    whole = pa.Table.from_batches(batches)
    sizes = pa.compute.binary_length(whole.column(1)).to_numpy()
    for shard in range(3):
        own = sizes[whole.column(0).to_numpy() == shard]
        (small,) = np.nonzero(own <= most)
        assert large / 2 < own[own > most].sum() <= 1.05 * large
        assert own.max() <= packing.LARGE_BLOB
        assert np.all(own[small[0] + 1 :] <= most)
    (piece,) = packing.unpack(batches, 1 << 20)
    assert len(piece.rows) == 4 * 60_000


def test_what_is_small_anyway_leaves_the_large_blobs_to_others() -> None:
    room = packing.Room(1 << 12, 1 << 18)
    few, many = (keyed(rows).to_batches()[0] for rows in (20, 8_000))
    for _ in range(1_000):
        assert len(list(room.blobs(few))) == 1
    assert len(list(room.blobs(many))) == 1 < len(list(packing.Room(1 << 12).blobs(many)))


def test_no_rows_are_no_blobs() -> None:
    assert list(packing.pack(plan_of(3), [keyed(0)])) == []
    assert list(packing.to_blobs(keyed(0), packing.Room(100))) == []
    assert list(packing.unpack([], 10)) == []
    assert list(packing.unpack(packing.PACKED.empty_table().to_batches(), 10)) == []


def test_a_message_goes_to_every_shard() -> None:
    """By what shards are called in the shuffle, or by their numbers."""
    for ids, names in ((None, [0, 1, 2]), ([7, 2, 5], [7, 2, 5])):
        sent = packing.for_all(plan_of(3), b"mark", ids)
        assert sent.schema == packing.PACKED
        assert [column.to_pylist() for column in sent.columns] == [names, [b"mark"] * 3]


def test_pieces_are_cut_where_a_shard_begins() -> None:
    blobs = [(0, 2), (0, 2), (1, 1), (2, 9), (2, 1), (4, 1)]
    packed = pa.record_batch(
        [
            pa.array([shard for shard, _ in blobs], pa.int64()),
            pa.array([packing.to_ipc(keyed(rows)) for _, rows in blobs], pa.binary()),
        ],
        schema=packing.PACKED,
    )
    pieces = [(p.first, p.last, len(p.rows)) for p in packing.unpack([packed], 3)]
    assert pieces == [(0, 0, 4), (1, 2, 11), (4, 4, 1)]


def test_shards_cost_what_they_hold_however_many_there_are() -> None:
    def cost(shards: int, times: int) -> float:
        planned, table = plan_of(shards), keyed(2 * shards)
        return cpu_seconds(
            lambda: list(packing.unpack(packing.pack(planned, [table]), 1 << 20)), times
        )

    assert cost(16_000, 1) < 48 * cost(1_000, 5)


def plan_of(shards: int) -> Any:
    options = Options(device="cpu", shards=shards)
    return plan(query(SlidingEventTimeWindows(10, 5), options=options), bounded=True)


def keyed(rows: int) -> pa.Table:
    numbers = np.arange(rows)
    keys = {"key": pa.array(numbers).cast(pa.string()), "part": pa.array(numbers % 3, pa.int32())}
    return pa.table({**keys, "i": numbers})


def test_a_shard_at_a_time_is_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_SHARD_ROWS", 10)
    made = query(SlidingEventTimeWindows(10, 5), options=Options(device="cpu", shards=50))
    planned = plan(made, bounded=True)
    rows = [{"key": str(i), "part": 1, "ts": i, "i": i} for i in range(400)]
    table = pa.Table.from_pylist(rows, schema=made.schema)
    stage = PartialStage(planned)
    batch, _counts = packing.pack(planned, stage.run(with_arrival(table).to_batches()))
    seen: list[int] = []
    fresh = workers.ShardRun._fresh

    def counted(run: Any) -> Any:
        seen.append(1)
        return fresh(run)

    monkeypatch.setattr(workers.ShardRun, "_fresh", counted)
    small = Options(device="cpu", shards=50, batch_rows=10)
    planned = plan(query(SlidingEventTimeWindows(10, 5), options=small), bounded=True)
    found = pa.Table.from_batches(list(workers.RunShards(planned, packed=True)([batch])))
    assert len(seen) > 10
    results = found.filter(pa.compute.is_null(found.column(workers.COUNTERS)))
    assert rows_of(results.drop_columns([*workers.TAGS])) == rows_of(
        local.run(planned, table).results
    )


HASHES = """
from gpu_windows.operators.columns.keys import KeyEncoder
from tests.operators.columns.key_columns import COLUMNS
encoder = KeyEncoder([column.type for column in COLUMNS.values()])
codes = encoder.encode(list(COLUMNS.values()))
print(encoder.hashes()[codes].tolist())
"""


def test_hashes_of_keys_are_the_same_in_every_process() -> None:
    from gpu_windows.operators.columns.keys import KeyEncoder

    columns = [column.take(pa.array([4, 2, 0, 1, 3])) for column in COLUMNS.values()]
    encoder = KeyEncoder([column.type for column in columns])
    codes = encoder.encode(columns)
    mine = encoder.hashes()[codes][[2, 3, 1, 4, 0]].tolist()
    command = [sys.executable, "-c", HASHES]
    other = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert str(mine) == other.strip()
    assert len(set(mine)) == 4


def test_hashes_spread_over_shards() -> None:
    from gpu_windows.operators.columns.keys import KeyEncoder

    for column in (pa.array(range(4_096)), pa.array([f"sensor-{i:05}" for i in range(4_096)])):
        encoder = KeyEncoder([column.type])
        codes = encoder.encode([column])
        hashes = encoder.hashes()[codes]
        counts = np.bincount(hashes % 16, minlength=16)
        assert counts.min() > 190
        assert counts.max() < 330
