"""What crosses a shuffle: shards by value, messages, and shards run one after the other."""

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
from gpu_windows.operators.slices.preaggregation import Preaggregation
from gpu_windows.planning.planner import plan
from gpu_windows.runners import local
from gpu_windows.vocabulary.options import Options
from gpu_windows.vocabulary.windows import SlidingEventTimeWindows
from tests.cost import cpu_seconds
from tests.examples import examples
from tests.operators.columns.key_columns import COLUMNS
from tests.operators.slices.tasks import with_arrival
from tests.planning.queries import assigners, query, rows_of, tables

workers = pytest.importorskip("gpu_windows.spark_glue.tasks.workers")
packing = pytest.importorskip("gpu_windows.spark_glue.tasks.packing")
fragments = pytest.importorskip("gpu_windows.spark_glue.tasks.fragments")
PACKED, SHARD, BLOB = fragments.PACKED, fragments.SHARD, fragments.BLOB
COUNTS = [workers.COUNTERS, workers.USER_COUNTERS, workers.USER_COUNTS]
Cutter, join_fragments = fragments.Cutter, fragments.join_fragments


@examples(40)
@given(assigners(), tables(), st.integers(1, 9), st.integers(1, 3))
def test_packed_partials_of_several_tasks_give_what_one_run_gives(
    assigner: Any, table: pa.Table, shards: int, tasks: int
) -> None:
    planned = plan(query(assigner, options=Options(device="cpu", shards=shards)), bounded=True)
    rows = with_arrival(table)
    packed = []
    for task in range(tasks):
        part = rows.take(pa.array(np.arange(task, len(rows), tasks)))
        stage = Preaggregation(planned)
        packed += packing.pack(planned, stage.run(part.to_batches()), max_bytes=200, sender=task)
    together = pa.Table.from_batches(packed, PACKED).sort_by([(SHARD, "ascending")])
    found = pa.Table.from_batches(
        list(workers.RunShards(planned, packed=True)(together.to_batches(max_chunksize=7)))
    )
    results = found.filter(pa.compute.is_null(found.column(workers.COUNTERS)))
    whole = local.run(planned, table)
    assert rows_of(results.drop_columns(COUNTS)) == rows_of(whole.results)
    counters = found.column(workers.COUNTERS).drop_null().to_pylist()
    assert Counters(*(sum(c) for c in zip(*counters, strict=True))) == whole.counters


@examples(60)
@given(st.lists(st.integers(0, 5_000), max_size=60), st.sampled_from([1, 700, 4_096, 20_000]))
def test_messages_have_few_bytes_or_one_row(lengths: list[int], most: int) -> None:
    table = pa.table({"text": ["x" * length for length in lengths], "n": range(len(lengths))})
    messages = list(packing.to_messages(table, most))
    found = [packing.from_ipc(each) for each in messages]
    assert all(len(m) <= most or len(part) == 1 for m, part in zip(messages, found, strict=True))
    assert [row for part in found for row in part.to_pylist()] == table.to_pylist()


def test_a_table_is_not_cut_more_than_need_be() -> None:
    table = pa.table({"n": np.arange(1 << 20)})
    messages = list(packing.to_messages(table, 1 << 16))
    assert len(messages) < 1.3 * table.nbytes / (1 << 16)
    assert max(map(len, messages)) <= 1 << 16


@pytest.mark.parametrize("shards", [1, 7, 300, 1 << 16])
def test_every_row_reaches_its_shard(shards: int) -> None:
    planned, table = plan_of(shards), keyed(3_000)
    (packed,) = packing.pack(planned, [table], max_bytes=1 << 12)
    messages = dict(join_fragments([packed]))
    assert [*messages] == sorted(messages)
    places = {n: i for i, n in enumerate(table["i"].to_pylist())}
    expected = packing.shards_of(planned, table)
    for shard, message in messages.items():
        rows = [places[n] for n in packing.from_ipc(message)["i"].to_pylist()]
        assert rows == np.flatnonzero(expected == shard).tolist()
    (piece,) = packing.unpack([packed], 1 << 20)
    assert (piece.first, piece.last, len(piece.rows)) == (min(messages), max(messages), 3_000)


def test_rows_wider_than_a_fragment_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of 20 MB crosses as many small rows of Spark's, and a batch holds no two such."""
    monkeypatch.setattr(packing, "_BATCH_BYTES", 1 << 20)
    noise = [np.random.default_rng(seed).bytes(20_000_000) for seed in range(2)]
    rows = keyed(2).append_column("noise", pa.array(noise))
    batches = list(packing.pack(plan_of(1), [rows], max_bytes=1 << 13))
    assert [len(batch) for batch in batches] == [2_442, 2_442]
    sizes = pa.compute.binary_length(pa.Table.from_batches(batches).column(BLOB))
    assert pa.compute.max(sizes).as_py() == 1 << 13
    (piece,) = packing.unpack(batches, 10)
    assert piece.rows.equals(rows.combine_chunks())


def test_large_messages_are_compressed() -> None:
    """And what is not made smaller by that, or is small anyway, crosses as it is."""
    few, many = keyed(40), keyed(40_000)
    noise = pa.table({"noise": [np.random.default_rng(1).bytes(1 << 20)]})
    sizes = [sum(map(len, packing.to_messages(each))) for each in (few, many, noise)]
    assert sizes[0] > few.nbytes
    assert sizes[1] < 0.7 * many.nbytes
    assert sizes[2] < 1.01 * noise.nbytes
    for rows in (few, many, noise):
        (found,) = map(packing.from_ipc, packing.to_messages(rows))
        assert found.equals(rows.combine_chunks())


def test_no_rows_are_no_messages() -> None:
    assert list(packing.pack(plan_of(3), [keyed(0)])) == []
    assert list(packing.to_messages(keyed(0), 100)) == []
    assert list(packing.unpack([], 10)) == []
    assert list(packing.unpack(PACKED.empty_table().to_batches(), 10)) == []


def test_a_message_goes_to_every_shard() -> None:
    """By what shards are called in the shuffle, or by their numbers."""
    for ids, names in ((None, [0, 1, 2]), ([7, 2, 5], [7, 2, 5])):
        sent = packing.send_to_all(plan_of(3), b"mark", ids)
        assert sent.schema == PACKED
        found = [(shard, message.to_pybytes()) for shard, message in join_fragments([sent])]
        assert found == [(name, b"mark") for name in names]


def test_pieces_are_cut_where_a_shard_begins() -> None:
    shards, counts = (0, 0, 1, 2, 2, 4), (2, 2, 1, 9, 1, 1)
    packed = Cutter(1 << 9).cut(shards, [packing.to_ipc(keyed(rows)) for rows in counts])
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
    stage = Preaggregation(planned)
    batch, _counts = packing.pack(planned, stage.run(with_arrival(table).to_batches()))
    seen: list[int] = []
    fresh = workers.PartitionRun._build_operator

    def counted(run: Any) -> Any:
        seen.append(1)
        return fresh(run)

    monkeypatch.setattr(workers.PartitionRun, "_build_operator", counted)
    small = Options(device="cpu", shards=50, batch_rows=10)
    planned = plan(query(SlidingEventTimeWindows(10, 5), options=small), bounded=True)
    found = pa.Table.from_batches(list(workers.RunShards(planned, packed=True)([batch])))
    assert len(seen) > 10
    results = found.filter(pa.compute.is_null(found.column(workers.COUNTERS)))
    assert rows_of(results.drop_columns(COUNTS)) == rows_of(local.run(planned, table).results)


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
