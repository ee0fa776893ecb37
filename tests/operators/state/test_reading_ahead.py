"""Files in a store: what a call reads of several runs is asked for together, before it is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest

from gpu_windows.errors import StateCorruptedError
from gpu_windows.operators.state import keyed_table, row_buffer, state_file_writer
from gpu_windows.operators.state.buffer_spec import BufferSpec, no_prefix
from gpu_windows.operators.state.entries import Entries
from gpu_windows.operators.state.files import MemoryFiles
from gpu_windows.operators.state.keyed_table import HASH, TIMERS, KeyedTable
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.row_buffer import RowBuffer
from gpu_windows.rules import LONG_MAX

RUNS = 6
#: Files, and the name of the newest.
Saved = Callable[[pytest.MonkeyPatch], tuple[dict[str, bytes], str]]


class RemoteFiles(MemoryFiles):
    """Files of a store.

    Attributes
    ----------
    rounds : int
        How often ranges were asked for together.
    alone : list of (str, int, int)
        Ranges that were read and not asked for before.
    """

    is_remote = True

    def __init__(self, files: dict[str, bytes] | None = None) -> None:
        super().__init__(files)
        self._at_hand: dict[str, set[int]] = {}
        self.rounds = 0
        self.alone: list[tuple[str, int, int]] = []

    def prefetch(self, ranges: Mapping[str, Sequence[tuple[int, int]]]) -> None:
        is_new = False
        for name, each in ranges.items():
            self._data(name)
            known = self._at_hand.setdefault(name, set())
            asked = {place for offset, length in each for place in range(offset, offset + length)}
            is_new |= not asked <= known
            known |= asked
        self.rounds += is_new

    def read_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        known = self._at_hand.get(name, set())
        self.alone += [
            (name, offset, length)
            for offset, length in ranges
            if not known.issuperset(range(offset, offset + length))
        ]
        return super().read_ranges(name, ranges)


def entries(keys: np.ndarray[tuple[int], np.dtype[np.int64]], value: int) -> Entries:
    rng = np.random.default_rng(value)
    columns = {HASH: keys, "value": np.full(len(keys), value)}
    columns |= {"noise": rng.integers(0, 1 << 62, len(keys))}
    columns |= {TIMERS[0]: keys % 1_000, TIMERS[1]: np.full(len(keys), LONG_MAX)}
    return Entries(pa.table(columns))


def hashes(numbers: Sequence[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    mixed = np.array(numbers, np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return np.sort(mixed.view(np.int64))


def saved_keys(monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, bytes], str]:
    """Return files of a table of some runs, with filters, and the name of the newest."""
    monkeypatch.setattr(keyed_table, "_BLOCK_BYTES", 2_000)
    files, newest = MemoryFiles(), None
    for run in range(RUNS):
        log = StateLog(files, newest)
        table = KeyedTable(log, "keys")
        mine = hashes(range(run * 2_000, run * 2_000 + 2_500))  # some are of two runs
        table.load(mine)
        table.save(entries(mine, run))
        newest = log.finish(uuid4().hex)
    assert newest is not None
    return files.files, newest


def saved_rows(monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, bytes], str]:
    """Return files of a buffer of some runs, and the name of the newest."""
    monkeypatch.setattr(row_buffer, "_BLOCK_BYTES", 2_000)
    monkeypatch.setattr(row_buffer, "_ORDERED_BYTES", 2_000)
    files, newest, rng = MemoryFiles(), None, np.random.default_rng(3)
    for _ in range(RUNS):
        log = StateLog(files, newest)
        buffer = RowBuffer(log, "rows", BufferSpec("time", no_prefix, in_order=True))
        columns = {"time": rng.permutation(4_000), "noise": rng.integers(0, 1 << 62, 4_000)}
        buffer.append(pa.table(columns))
        newest = log.finish(uuid4().hex)
    assert newest is not None
    return files.files, newest


def find_keys(log: StateLog) -> object:
    table = KeyedTable(log, "keys")
    found = table.load(hashes([5, 2_100, 2_300, 7_777, 12_001, 99_999]))
    return None if found is None else sorted(found.table["value"].to_pylist())


def find_due(log: StateLog) -> object:
    found = KeyedTable(log, "keys").load_due(3)
    return None if found is None else sorted(found.table[TIMERS[0]].to_pylist())


def find_all(log: StateLog) -> object:
    found = KeyedTable(log, "keys").load_due(LONG_MAX)
    return None if found is None else sorted(found.table["value"].to_pylist())


def merge_keys(log: StateLog) -> object:
    table = KeyedTable(log, "keys")
    mine = hashes(range(2_000))
    table.load(mine)
    table.save(entries(mine, 99))
    log.finish("new")
    return len(log.runs("keys"))


def rows_of(log: StateLog) -> RowBuffer:
    return RowBuffer(log, "rows", BufferSpec("time", no_prefix, in_order=True))


def find_rows(log: StateLog) -> object:
    found = rows_of(log).between(1_000, 1_010)
    return None if found is None else found["time"].to_pylist()


def take_due_rows(log: StateLog) -> object:
    return [rows["time"].to_pylist() for rows in rows_of(log).take_due(700)]


def merge_rows(log: StateLog) -> object:
    buffer = rows_of(log)
    buffer.append(pa.table({"time": np.arange(4_000), "noise": np.arange(4_000)}))
    log.finish("new")
    return len(log.runs("rows"))


#: What is done, of which files, and in how many rounds at most.
CALLS: dict[str, tuple[Callable[[StateLog], object], Saved, int]] = {
    "keys": (find_keys, saved_keys, 2),
    "keys that are due": (find_due, saved_keys, 3),
    "all keys": (find_all, saved_keys, 2),
    "keys that are merged": (merge_keys, saved_keys, 3),
    "rows": (find_rows, saved_rows, 2),
    "rows that are due": (take_due_rows, saved_rows, 2),
    "rows that are merged": (merge_rows, saved_rows, 2),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_all_that_is_read_was_asked_for_together(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    call, saved, rounds = CALLS[name]
    with monkeypatch.context() as patch:
        patch.setattr(state_file_writer, "MERGE_FANIN", 99)
        files, newest = saved(patch)
    monkeypatch.setattr(state_file_writer, "MERGE_FANIN", 2)
    plain, remote = MemoryFiles({**files}), RemoteFiles({**files})
    assert call(StateLog(remote, newest)) == call(StateLog(plain, newest))
    assert remote.alone == []
    assert 0 < remote.rounds <= rounds


def test_filters_that_are_large_are_asked_for_in_a_round_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gpu_windows.operators.state.log._SMALL_FILTER", 0)
    monkeypatch.setattr(state_file_writer, "MERGE_FANIN", 99)
    files, newest = saved_keys(monkeypatch)
    remote = RemoteFiles(files)
    assert find_keys(StateLog(remote, newest)) == find_keys(StateLog(MemoryFiles(files), newest))
    assert (remote.alone, remote.rounds) == ([], 3)


def test_a_file_that_is_gone_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_file_writer, "MERGE_FANIN", 99)
    files, newest = saved_keys(monkeypatch)
    first = min(name for name in files if name != newest)
    del files[first]
    log = StateLog(RemoteFiles(files), newest)
    with pytest.raises(StateCorruptedError, match=first):
        find_keys(log)
