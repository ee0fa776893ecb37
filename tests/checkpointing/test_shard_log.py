"""A shard's log holds what was written last, in few files, and writes what was touched."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_windows.checkpointing.local_files import LocalFiles
from gpu_windows.checkpointing.shard_log import ShardLog
from gpu_windows.errors import StateCorruptedError, StateVersionError

NAMES = st.tuples(st.sampled_from(["rows", "head", "timers"]), st.integers(-2, 3))
CHANGES = st.lists(st.tuples(NAMES, st.none() | st.binary(max_size=300)), max_size=6)


def blobs_of(log: ShardLog) -> dict[tuple[str, int], bytes | None]:
    return {name: log.read(*name) for name in log.names()}


@given(calls=st.lists(st.tuples(CHANGES, st.booleans()), max_size=12))
def test_it_holds_what_was_written_last(
    tmp_path_factory: pytest.TempPathFactory, calls: list[Any]
) -> None:
    """Calls that do not finish change nothing."""
    files = LocalFiles(str(tmp_path_factory.mktemp("log")))
    wanted: dict[tuple[str, int], bytes] = {}
    newest = None
    for number, (changes, finishes) in enumerate(calls):
        log, expected = ShardLog(files, newest), dict(wanted)
        for name, blob in changes:
            if blob is not None:
                log.write(name[0], name[1], blob)
                expected[name] = blob
            elif name in expected:
                log.remove(*name)
                del expected[name]
            else:
                with pytest.raises(StateCorruptedError):
                    log.remove(*name)
        assert blobs_of(log) == expected
        assert log.read("none", 0) is None
        if finishes:
            newest, wanted = log.finish(f"state/{number}"), expected
            assert blobs_of(log) == wanted
        assert blobs_of(ShardLog(files, newest)) == wanted


def test_files_stay_few_and_little_is_written_again(tmp_path: Path) -> None:
    """400 micro-batches touch 20 of 2,000 blobs each."""
    rng, files, newest = random.Random(2), LocalFiles(str(tmp_path)), None
    touched, most = 0, 0
    written = 0
    for number in range(400):
        log = ShardLog(files, newest)
        for _ in range(20):
            blob = rng.randbytes(rng.randrange(2_000))
            log.write("rows", rng.randrange(2_000), blob)
            touched += len(blob)
        newest = log.finish(f"state/{number:04}")
        most = max(most, len(log.directory.sizes))
        assert newest is not None
        written += log.directory.sizes[newest]
    live = sum(log.directory.live_bytes.values())
    assert most < 40
    assert sum(log.directory.sizes.values()) < 2 * live
    assert written < 5 * touched


def test_a_call_that_changes_nothing_writes_nothing(tmp_path: Path) -> None:
    files = LocalFiles(str(tmp_path))
    assert ShardLog(files, None).finish("state/0") is None
    log = ShardLog(files, None)
    log.write("rows", 0, b"a")
    newest = log.finish("state/1")
    again = ShardLog(files, newest)
    again.write("rows", 1, b"b")
    again.remove("rows", 1)
    assert again.finish("state/2") == newest
    assert files.names("state") == ["state/1"]


def test_what_is_damaged_or_gone_is_refused(tmp_path: Path) -> None:
    files = LocalFiles(str(tmp_path))
    log = ShardLog(files, None)
    log.write("rows", 0, b"abc")
    newest = log.finish("state/1")
    path = tmp_path / "state" / "1"
    whole = path.read_bytes()
    for damaged in (b"", whole[:-1], whole[:20], b"x" + whole[1:], whole[:-30] + bytes(30)):
        path.write_bytes(damaged)
        with pytest.raises(StateCorruptedError, match="state/1"):
            ShardLog(files, newest)
    path.write_bytes(whole[:4] + bytes([9]) + whole[5:])
    with pytest.raises(StateVersionError, match="got 9"):
        ShardLog(files, newest)
    path.write_bytes(whole)
    log = ShardLog(files, newest)
    path.unlink()
    with pytest.raises(StateCorruptedError, match="must be there, got state/1"):
        log.read("rows", 0)
    with pytest.raises(StateCorruptedError, match="must be there, got state/1"):
        ShardLog(files, newest)


def test_a_name_is_used_once(tmp_path: Path) -> None:
    files = LocalFiles(str(tmp_path))
    files.write("state/1", [b"a"])
    with pytest.raises(FileExistsError):
        files.write("state/1", [b"b"])
    assert files.create("commits/1", b"a")
    assert not files.create("commits/1", b"b")
    assert files.read("commits/1") == b"a"
    assert files.names("commits") == ["commits/1"]
    assert files.names("nowhere") == []
