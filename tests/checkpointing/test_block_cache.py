"""Blocks of state files on the disk of a machine: never wrong, never more than they may take."""

from __future__ import annotations

import copy
import multiprocessing
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from gpu_windows.checkpointing import block_cache
from gpu_windows.checkpointing.block_cache import (
    BLOCK,
    END,
    BlockCache,
    Blocks,
    BlockWriter,
    MemoryBlocks,
    find_cache,
    find_missing,
    read_end_through,
    read_through,
    store_blocks,
)
from gpu_windows.errors import InvalidOptionError

MIB = 1 << 20


@pytest.fixture
def cache(tmp_path: Path) -> BlockCache:
    return BlockCache(tmp_path, 64 * MIB)


@pytest.fixture(params=["on a disk", "in memory"])
def blocks(request: pytest.FixtureRequest, tmp_path: Path) -> Blocks:
    return MemoryBlocks() if request.param == "in memory" else BlockCache(tmp_path, 64 * MIB)


def write_through(cache: Blocks, name: str, content: bytes, part: int = 10_000) -> None:
    writer = BlockWriter(cache, name)
    for begin in range(0, len(content), part):
        writer.add(content[begin : begin + part])
    writer.finish()


class File:
    """A file in a store, and the ranges that were asked for."""

    def __init__(self, size: int) -> None:
        self.content = random.Random(size).randbytes(size)
        self.asked: list[tuple[int, int]] = []

    def ranges(self, ranges: block_cache.Ranges) -> list[bytes]:
        self.asked += ranges
        return [self.content[offset : offset + length] for offset, length in ranges]

    def end(self, length: int) -> bytes:
        self.asked.append((-1, length))
        return self.content[-length:]


def test_ranges_are_those_of_the_file(blocks: Blocks) -> None:
    file, rng = File(3 * BLOCK + 77), random.Random(1)
    for _ in range(200):
        ranges = [
            (rng.randrange(4 * BLOCK), rng.choice([0, 1, 100, BLOCK, 2 * BLOCK]))
            for _ in range(rng.randrange(4))
        ]
        expected = [file.content[offset : offset + length] for offset, length in ranges]
        assert read_through(blocks, "a", ranges, file.ranges) == expected
        length = rng.choice([1, 100, END - 1, END, END + 1, 2 * BLOCK, 9 * BLOCK])
        assert read_end_through(blocks, "a", length, file.end) == file.content[-length:]
    whole = [number for number, length in file.asked if length == BLOCK]
    assert len(whole) == len(set(whole))  # each block once


@pytest.mark.parametrize("size", [0, 5, END, BLOCK, BLOCK + 1, 2 * BLOCK + 5, 3 * BLOCK])
@pytest.mark.parametrize("part", [1_000, BLOCK, 10 * BLOCK])
def test_what_was_written_is_not_asked_for(blocks: Blocks, size: int, part: int) -> None:
    file = File(size)
    write_through(blocks, "a", file.content, part)
    ranges = [(0, size), (size // 2, size - size // 2), (max(size - 3, 0), min(size, 2))]
    expected = [file.content[offset : offset + length] for offset, length in ranges]
    assert read_through(blocks, "a", ranges, file.ranges) == expected
    assert read_end_through(blocks, "a", 40, file.end) == file.content[-40:]
    assert file.asked == []
    assert read_through(blocks, "b", [(0, 1)], File(9).ranges) == [File(9).content[:1]]


def test_what_is_missing_is_kept_and_then_not_asked_for(blocks: Blocks) -> None:
    file = File(5 * BLOCK + 9)
    assert read_through(blocks, "a", [(BLOCK, 1)], file.ranges) == [file.content[BLOCK : BLOCK + 1]]
    ranges = [(2 * BLOCK - 1, 2), (5 * BLOCK, 9), (3, 0)]
    missing = find_missing(blocks, "a", ranges)
    assert missing == [(2 * BLOCK, BLOCK), (5 * BLOCK, BLOCK)]
    store_blocks(blocks, "a", missing, file.ranges(missing))
    assert find_missing(blocks, "a", ranges) == []
    asked = [*file.asked]
    expected = [file.content[offset : offset + length] for offset, length in ranges]
    assert read_through(blocks, "a", ranges, file.ranges) == expected
    assert file.asked == asked


def test_blocks_in_memory_are_few_and_stay_where_they_are() -> None:
    blocks = MemoryBlocks()
    for number in range(2_000):
        blocks.write(f"a/{number}", bytes(BLOCK))
    assert [blocks.has(f"a/{number}") for number in (0, 900, 1_100, 1_999)] == [
        False,
        False,
        True,
        True,
    ]
    blocks.write("a/1999", b"again")
    assert blocks.read("a/1999") == b"again"
    assert not copy.copy(blocks).has("a/1999")


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "a byte": lambda block: block[:-1] + bytes([block[-1] ^ 1]),
    "cut off": lambda block: block[:-1],
    "empty": lambda _: b"",
    "longer": lambda block: block + b"x",
    "no header": lambda block: block[4:],
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_block_is_read_again(cache: BlockCache, tmp_path: Path, kind: str) -> None:
    file = File(100)
    write_through(cache, "a", file.content)
    for block in tmp_path.iterdir():
        block.write_bytes(DAMAGE[kind](block.read_bytes()))
    assert read_through(cache, "a", [(0, 100)], file.ranges) == [file.content]
    assert read_end_through(cache, "a", 9, file.end) == file.content[-9:]
    assert len(file.asked) == 2


def test_a_block_under_the_name_of_another_is_not_taken(cache: BlockCache, tmp_path: Path) -> None:
    cache.write("a/0", b"other")
    (other,) = tmp_path.iterdir()
    cache.write("b/0", b"right")
    (right,) = set(tmp_path.iterdir()) - {other}
    other.replace(right)
    assert cache.read("b/0") is None


def test_blocks_take_no_more_than_they_may(tmp_path: Path) -> None:
    cache = BlockCache(tmp_path, 4 * MIB)
    (tmp_path / ".draft-old").write_bytes(b"x")
    os.utime(tmp_path / ".draft-old", (0, 0))
    for number in range(64):
        cache.write(f"a/{number}", bytes(BLOCK))
        os.utime(cache._path(f"a/{number}"), (number, number))
        assert cache.read("a/0") is not None  # used all the time
        total = sum(each.stat().st_size for each in tmp_path.iterdir())
        assert total <= 4 * MIB + BLOCK + 17 * 100
    assert cache.read("a/63") is not None
    assert cache.read("a/1") is None
    assert not (tmp_path / ".draft-old").exists()


def test_a_read_of_much_goes_past_the_cache(tmp_path: Path) -> None:
    cache, file = BlockCache(tmp_path, 4 * MIB), File(MIB)
    assert read_through(cache, "a", [(0, MIB)], file.ranges) == [file.content]
    assert list(tmp_path.iterdir()) == []


def test_of_a_file_that_is_large_the_begin_and_the_end_are_kept(tmp_path: Path) -> None:
    cache, file = BlockCache(tmp_path, 4 * MIB), File(MIB + 5)
    write_through(cache, "a", file.content)
    assert len(list(tmp_path.iterdir())) <= MIB // 4 // BLOCK + 2
    assert read_through(cache, "a", [(7, 9)], file.ranges) == [file.content[7:16]]
    assert read_end_through(cache, "a", 40, file.end) == file.content[-40:]
    assert file.asked == []
    offset = MIB - BLOCK
    assert read_through(cache, "a", [(offset, BLOCK + 5)], file.ranges) == [file.content[offset:]]


def test_a_disk_that_fails_is_an_empty_cache(tmp_path: Path) -> None:
    file = File(100)
    cache = BlockCache(tmp_path / "gone", 64 * MIB)
    for _ in range(2):
        assert read_through(cache, "a", [(0, 100)], file.ranges) == [file.content]
    assert len(file.asked) == 2


def _read_much(folder: str, seed: int) -> None:
    cache, rng = BlockCache(Path(folder), 2 * MIB), random.Random(seed)
    files = {f"{number}": File(BLOCK + number) for number in range(12)}
    for _ in range(150):
        name, offset = str(rng.randrange(12)), rng.randrange(BLOCK)
        file = files[name]
        (found,) = read_through(cache, name, [(offset, 300)], file.ranges)
        assert found == file.content[offset : offset + 300]
        assert read_end_through(cache, name, 30, file.end) == file.content[-30:]


def test_processes_share_blocks(tmp_path: Path) -> None:
    """They write, read and delete the same ones all the time."""
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_read_much, args=(str(tmp_path), n)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0] * 4


def test_where_blocks_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path},/elsewhere")
    found = find_cache()
    assert found is not None
    found.write("a", b"x")
    (folder,) = tmp_path.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert found is find_cache()
    assert found.max_bytes == 1 << 30
    monkeypatch.setenv("GPU_WINDOWS_BLOCK_CACHE_BYTES", "0")
    assert find_cache() is None
    monkeypatch.setenv("GPU_WINDOWS_BLOCK_CACHE_BYTES", "1 GB")
    with pytest.raises(InvalidOptionError, match="number of bytes, got '1 GB'"):
        find_cache()


@pytest.mark.parametrize("kind", ["open to all", "a link", "a file"])
def test_a_folder_that_others_may_have_made_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Who can write blocks can write state."""
    folder = tmp_path / f"gpu_windows-blocks-{os.geteuid()}"
    if kind == "open to all":
        folder.mkdir()
        folder.chmod(0o777)
    elif kind == "a link":
        (tmp_path / "other").mkdir(mode=0o700)
        folder.symlink_to(tmp_path / "other")
    else:
        folder.write_bytes(b"")
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    assert find_cache() is None
