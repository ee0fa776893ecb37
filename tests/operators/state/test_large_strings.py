"""More text than an array holds, by limits that are small here."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from gpu_windows.errors import ArrayOverflowError, StateCorruptedError
from gpu_windows.operators.panes.fire_at_end import FireAtEndOperator
from gpu_windows.operators.state import frames, large_strings
from gpu_windows.operators.state.frames import pack_batches, unpack_batches
from gpu_windows.operators.state.large_strings import naming_overflow, take_rows
from gpu_windows.operators.state.log import StateLog
from tests.operators.state.restarted import Restarted
from tests.operators.state.test_widths import QUERIES, keyed, rows, run


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "MAX_BATCH_BYTES", 64)
    monkeypatch.setattr(large_strings, "MAX_STRING_BYTES", 64)


def too_large() -> pa.Array:
    """Return a list of nearly as many nulls as a list may have: they take no memory."""
    nothing = pa.nulls(2**31 - 2, pa.null())
    return pa.ListArray.from_arrays(pa.array([0, len(nothing)], pa.int32()), nothing)


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("kind", QUERIES)
def test_state_of_many_batches_a_block_gives_the_same(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = run(QUERIES[kind], [False, False])
    monkeypatch.undo()
    assert found == run(QUERIES[kind], [False, False])


@pytest.mark.usefixtures("_small")
def test_a_block_of_a_key_has_several_batches() -> None:
    """All of a key are in one block, however much that is."""
    made = QUERIES["sessions"]
    query = Restarted(made(keyed(large=False)), 1)
    query.micro_batch(rows(), 0)
    log = StateLog(query.files, query.newest[0])
    chunks = [
        table.column(0).num_chunks
        for name in log.table_names
        for at in log.runs(name)
        for tables in log.read_blocks(at, np.arange(len(log.block_index(at))))
        for table in tables
    ]
    assert max(chunks) > 4


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("count", [0, 1, 50])
def test_a_frame_of_several_batches(count: int) -> None:
    texts = pa.array([None if each == 3 else "x" * each for each in range(count)], pa.string())
    tables = [pa.table({"a": texts, "n": pa.array(range(count), pa.int64())}), pa.table({"b": [1]})]
    frame = pack_batches(tables)
    found = unpack_batches(frame, [table.schema for table in tables], "a test")
    assert [table.to_pydict() for table in found] == [table.to_pydict() for table in tables]
    assert (found[0].column("a").num_chunks > 1) == (count == 50)
    damaged = bytearray(frame)
    damaged[-1] ^= 1
    with pytest.raises(StateCorruptedError):
        unpack_batches(bytes(damaged), [table.schema for table in tables], "a test")


@pytest.mark.usefixtures("_small")
def test_rows_of_large_texts_are_taken_in_pieces() -> None:
    texts = pa.chunked_array([["a" * 40, None], ["b" * 50, "", "c"], ["d" * 90]])
    table = pa.table({"t": texts, "data": texts.cast(pa.binary()), "n": list(range(6))})
    order = np.array([5, 0, 0, 3, 1, 2, 4])
    found = take_rows(table, order)
    assert found.schema == table.schema
    assert found.column("t").num_chunks > 2
    assert found.to_pylist() == [table.to_pylist()[place] for place in order]
    assert take_rows(table, order[:0]).schema == table.schema


def test_what_does_not_fit_is_named() -> None:
    lists = [too_large(), too_large()]
    rule = "less than 2 GiB: take more shards"
    with pytest.raises(ArrayOverflowError, match=rule) as error, naming_overflow():
        pa.concat_arrays(lists)
    assert "offset overflow" in str(error.value)


@pytest.mark.parametrize("where", ["rows", "state"])
def test_a_micro_batch_names_what_does_not_fit(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether an operator takes rows, or state is written: nothing of it is kept."""
    lists = [too_large(), too_large()]

    def fails(*_: object, **__: object) -> None:
        pa.concat_arrays(lists)

    query = Restarted(QUERIES["rows of slices"](keyed(large=False)), 1)
    query.micro_batch(rows()[:10], -1)
    before = [*query.newest]
    name = "process" if where == "rows" else "_save"
    monkeypatch.setattr(FireAtEndOperator, name, fails)
    with pytest.raises(ArrayOverflowError, match="smaller micro-batches"):
        query.micro_batch(rows()[10:], -1)
    monkeypatch.undo()
    assert query.newest == before
    assert len(query.micro_batch(rows()[10:], 10**6)) > 3


def test_other_errors_of_arrow_stay() -> None:
    with pytest.raises(pa.ArrowInvalid, match="Could not convert"), naming_overflow():
        pa.array(["x"], pa.int64())


@pytest.mark.parametrize("count", [1, 2, 3])
def test_buffers_of_a_frame_are_aligned(count: int) -> None:
    tables = [pa.table({"a": pa.array([number, 7], pa.int64())}) for number in range(count)]
    found = unpack_batches(pack_batches(tables), [table.schema for table in tables], "a test")
    assert [table["a"].to_pylist() for table in found] == [[n, 7] for n in range(count)]
    values = [table["a"].chunk(0).to_numpy() for table in found]
    assert all(each.flags.aligned for each in values)
