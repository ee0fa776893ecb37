"""The log of the state of a shard: what it writes, which files it needs, and damage to these."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gpu_windows.errors import StateCorruptedError, StateVersionError
from gpu_windows.operators.state import (
    hashes,
    keyed_table,
    manifest,
    row_buffer,
    runs,
    state_file_writer,
)
from gpu_windows.operators.state import log as log_module
from gpu_windows.operators.state.buffer_spec import BufferSpec, KeyColumns, no_prefix
from gpu_windows.operators.state.keyed_table import KeyedTable
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.memory_log import MemoryLog
from gpu_windows.operators.state.row_buffer import RowBuffer
from gpu_windows.operators.state.whole_table import WholeTable
from gpu_windows.rules import LONG_MAX
from tests.lanes import quick
from tests.operators.state.counting import Counting, CountingFiles, reopened
from tests.operators.state.test_keyed_table import by_hash, hashes_of, to_entries

IN_ORDER = BufferSpec("time", no_prefix, in_order=True)
#: A micro-batch in which a table is appended to: how many rows, of some bytes each.
ROWS = 20


def rows(times: Iterable[int]) -> pa.Table:
    of = np.array([*times], np.int64)
    return pa.table({"time": of, "value": np.random.default_rng(of).integers(0, 1 << 60, len(of))})


def appended(log: StateLog, times: Iterable[int], *, until: int = -1) -> StateLog:
    """Append rows to a buffer, and take those up to a time as expired; return the log anew."""
    buffer = RowBuffer(log, "rows", IN_ORDER)
    buffer.append(rows(times))
    buffer.forget(until)
    assert isinstance(log.files, CountingFiles)
    log.finish(f"file {len(log.files.files)} {log.newest is None} {log.files.counts['writes']}")
    return StateLog(log.files, log.newest)


def times_in(log: StateLog) -> list[int]:
    found = RowBuffer(log, "rows", IN_ORDER).between(0, LONG_MAX - 1)
    return [] if found is None else sorted(found["time"].to_pylist())


# ---- what is written


def test_nothing_is_written_when_nothing_has_changed() -> None:
    files = CountingFiles()
    log = StateLog(files)
    RowBuffer(log, "rows", IN_ORDER)
    KeyedTable(log, "keys").load(hashes_of([1]))
    assert log.finish("first") in (None, "first")
    log = appended(StateLog(files), range(ROWS))
    before = dict(files.files)
    table = KeyedTable(log, "keys")
    buffer = RowBuffer(log, "rows", IN_ORDER)
    log.set_numbers("keys", {})
    log.finish("second")
    log = StateLog(files, log.newest)
    newest, before = log.newest, dict(files.files)
    for _ in range(3):
        table, buffer = KeyedTable(log, "keys"), RowBuffer(log, "rows", IN_ORDER)
        assert table.load(hashes_of([1, 2])) is None
        assert buffer.between(0, 5) is not None
        buffer.forget(-1)
        assert log.finish("third") == newest
    assert files.files == before


def test_a_number_that_changes_is_written_without_rows() -> None:
    log = appended(StateLog(CountingFiles()), range(ROWS))
    (run,) = log.runs("rows")
    RowBuffer(log, "rows", IN_ORDER)
    log.set_numbers("operator", {"watermark": 7})
    log.finish("numbers")
    assert isinstance(log.files, CountingFiles)
    assert len(log.files.files["numbers"]) < 600
    again = reopened(log)
    assert (again.numbers("operator", ["watermark"]), again.runs("rows")) == ([7], [run])
    assert set(again.live_files) == {"numbers", run.file}


def test_a_log_that_goes_on_after_it_was_written_notices_numbers() -> None:
    log = StateLog(CountingFiles())
    for number in range(3):
        log.set_numbers("operator", {"watermark": number})
        log.finish(f"file {number}")
        assert reopened(log).numbers("operator", ["watermark"]) == [number]


@pytest.mark.parametrize("first_class_bits", [18, 10])
def test_files_stay_few(first_class_bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each size there are fewer than `MERGE_FANIN`: each is eight times as large as the last."""
    monkeypatch.setattr(state_file_writer, "_FIRST_CLASS_BITS", first_class_bits)
    files = CountingFiles()
    log, alone = StateLog(files), 0
    for call in range(1_000):
        log = appended(log, range(ROWS * call, ROWS * (call + 1)))
        sizes = state_file_writer.size_class(log.live_size) + 1
        assert len(log.live_files) <= sizes * (state_file_writer.MERGE_FANIN - 1) + 1
        alone += len(files.files[log.live_files[-1]]) if call == 0 else 0
    assert times_in(log) == [*range(ROWS * 1_000)]
    if first_class_bits == 10:
        assert sizes > 2
        assert files.counts["bytes_written"] < (sizes + 3) * 1_000 * alone


@pytest.mark.parametrize(("expired", "is_written_again"), [(400, False), (600, True)])
def test_a_segment_is_written_again_when_half_of_its_file_has_expired(
    expired: int,
    is_written_again: bool,
) -> None:
    log = appended(StateLog(CountingFiles()), range(1_000))
    (first,) = log.live_files
    size = log.live_size
    log = appended(log, range(1_000, 1_001), until=expired)
    assert (first not in log.live_files) == is_written_again
    assert not is_written_again or log.live_size < 0.6 * size
    again = reopened(log)
    assert times_in(again) == [*range(expired + 1, 1_001)]


def test_runs_of_which_all_has_expired_need_no_file() -> None:
    log = StateLog(CountingFiles())
    for call in range(5):
        log = appended(log, range(10 * call, 10 * call + 10), until=10 * call - 1)
        assert len(log.live_files) == 1
    log = appended(log, [], until=49)
    assert (log.runs("rows"), log.live_size, len(log.live_files)) == ([], 0, 1)


def test_a_write_that_fails_leaves_the_state_as_it_was() -> None:
    class Full(CountingFiles):
        is_full = False

        def write(self, name: str, parts: Iterable[bytes]) -> None:
            if self.is_full:
                next(iter(parts))
                raise OSError("no space left")
            super().write(name, parts)

    files = Full()
    log = appended(StateLog(files), range(ROWS))
    newest, before = log.newest, dict(files.files)
    files.is_full = True
    with pytest.raises(OSError, match="no space left"):
        appended(log, range(ROWS, 2 * ROWS))
    assert files.files == before
    assert times_in(StateLog(files, newest)) == [*range(ROWS)]


# ---- which files are needed


def test_live_files_are_those_that_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_file_writer, "MERGE_FANIN", 4)
    log, most = StateLog(CountingFiles()), 0
    for call in range(40):
        log = appended(log, range(ROWS * call, ROWS * (call + 1)), until=ROWS * (call - 11))
        log.check_files()
        assert isinstance(log.files, CountingFiles)
        assert set(log.live_files) <= log.files.files.keys()
        assert times_in(reopened(log)) == times_in(reopened(log, live_only=False))
        for name in log.live_files:
            left = {other: log.files.files[other] for other in log.live_files if other != name}
            with pytest.raises(StateCorruptedError, match=name):
                StateLog(CountingFiles(left), log.newest).check_files()
        most = max(most, len(log.live_files))
    assert most > 2


def test_a_file_that_is_read_is_missing() -> None:
    log = appended(appended(StateLog(CountingFiles()), range(ROWS)), range(ROWS, 30))
    old = log.runs("rows")[0].file
    assert isinstance(log.files, CountingFiles)
    del log.files.files[old]
    again = StateLog(log.files, log.newest)
    with pytest.raises(StateCorruptedError, match=old):
        times_in(again)


# ---- damage


def saved_state() -> tuple[CountingFiles, str]:
    """Return a state of one file that has all kinds of tables, filters and numbers."""
    log = StateLog(CountingFiles())
    keys = KeyedTable(log, "keys")
    some = {k: [(k, k, LONG_MAX, (k,) if k % 3 == 0 else ())] for k in range(4)}
    keys.load(hashes_of(some))
    keys.save(to_entries(some))
    RowBuffer(log, "rows", IN_ORDER).append(rows(range(4)))
    WholeTable(log, "whole", KeyColumns.NONE).save(pa.table({"name": ["a", "b"], "count": [1, 2]}))
    log.set_numbers("operator", {"watermark": 7})
    log.finish("state")
    assert isinstance(log.files, CountingFiles)
    return log.files, "state"


def read_all(data: bytes) -> Any:
    """Return all that a state file has."""
    log = StateLog(CountingFiles({"state": data}), "state")
    numbers = log.numbers("operator", ["watermark"])
    table = KeyedTable(log, "keys")
    found = [by_hash(table.find(hashes_of([key]))) for key in range(5)]
    buffer = RowBuffer(log, "rows", IN_ORDER)
    between = [buffer.between(time, time) for time in range(4)]
    timers = table.next_timers(), table.take_due(2).tolist()
    whole = WholeTable(log, "whole", KeyColumns.NONE).load()
    rows_of = [each.to_pylist() for each in (*between, whole) if each is not None]
    return numbers, found, by_hash(table.find_all()), rows_of, timers


@pytest.mark.parametrize("small_run", quick([1, 1 << 15]))
def test_damage_to_any_byte_never_gives_other_state(
    small_run: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name, value in (
        (log_module, "_SMALL_RUN", small_run),
        (keyed_table, "_BLOCK_BYTES", 200),
        (row_buffer, "_BLOCK_BYTES", 60),
        (runs, "_MIN_FILTERED", 2),
        (hashes, "_BLOCKS", 1),
        (manifest, "_TAIL", 24),
    ):
        monkeypatch.setattr(module, name, value)
    files, name = saved_state()
    data = files.files[name]
    whole = read_all(data)
    detected = 0
    for at in range(len(data)):
        damaged = bytearray(data)
        damaged[at] ^= (0x01, 0x80, 0xFF)[at % 3]
        try:
            assert read_all(bytes(damaged)) == whole, at
        except (StateCorruptedError, StateVersionError):
            detected += 1
    assert detected > 0.9 * len(data)


@pytest.mark.parametrize("length", [0, 1, 15, 100])
def test_a_file_that_was_cut_short(length: int) -> None:
    files, name = saved_state()
    with pytest.raises(StateCorruptedError):
        StateLog(CountingFiles({name: files.files[name][:length]}), name)
    with pytest.raises(StateCorruptedError):
        StateLog(CountingFiles({name: files.files[name][:-1]}), name)


def test_another_version() -> None:
    files, name = saved_state()
    data = files.files[name]
    other = data[:-8] + struct.pack("<I4s", manifest.VERSION + 1, manifest.MAGIC)
    with pytest.raises(StateVersionError, match=str(manifest.VERSION + 1)):
        StateLog(CountingFiles({name: other}), name)


def test_the_state_of_another_operator() -> None:
    files, name = saved_state()
    log = StateLog(files, name)
    for owner, names in (("other", ["watermark"]), ("operator", ["watermark", "clock"])):
        with pytest.raises(StateCorruptedError, match=owner):
            log.numbers(owner, names)
    assert StateLog(CountingFiles()).numbers("other", ["watermark"]) is None


def test_tables_of_another_operator_are_not_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_file_writer, "MERGE_FANIN", 2)
    files, name = saved_state()
    log = StateLog(files, name)
    with pytest.raises(StateCorruptedError, match="keys"):
        appended(log, range(3))


def test_state_in_memory_is_read_again_as_it_was_saved() -> None:
    log = Counting()
    RowBuffer(log, "rows", IN_ORDER).append(rows(range(5)))
    log.reopen()
    copy = log.copy()
    RowBuffer(log, "rows", IN_ORDER).append(rows(range(5, 9)))
    log.reopen()
    assert (times_in(copy), times_in(log)) == ([*range(5)], [*range(9)])


@pytest.mark.parametrize("rows", [300 * 2**step for step in range(7)])
def test_segments_are_few_whatever_micro_batches_have(rows: int) -> None:
    """How large a segment becomes is estimated before it is written: about a size, or the next."""
    log = MemoryLog()
    for call in range(40):
        log.reopen()
        buffer = RowBuffer(log, "rows", BufferSpec("t", no_prefix, in_order=True))
        times = np.arange(call * rows, (call + 1) * rows)
        noise = np.random.default_rng(call).integers(0, 1 << 16, rows)
        buffer.append(pa.table({"t": times, "v": noise}))
        log.reopen()
        assert len(log.runs("rows")) <= 2 * (state_file_writer.MERGE_FANIN + 1)
