"""Caches blocks of state files, which never change, on the disk of the machine that reads them.

A block is a file of its own, written as a draft and renamed, so processes can share a folder. A
block has its length and a CRC-32; a damaged one is read from the store again.
"""

from __future__ import annotations

import hashlib
import os
import stat
import struct
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias
from uuid import uuid4

from gpu_windows.errors import InvalidOptionError

#: Environment variable: maximum bytes of blocks on a machine; 0: nothing is cached.
BYTES_VARIABLE = "GPU_WINDOWS_BLOCK_CACHE_BYTES"
_DEFAULT_BYTES = 1 << 30
#: Environment variable of the folder for files of tasks on an executor.
_SPARK_FOLDERS = "SPARK_LOCAL_DIRS"
#: Bytes of a block, and minimum bytes to read at the end of a file.
BLOCK, END = 1 << 16, 1 << 16
#: Fractions of the limit: written by a process between evictions; freed by an eviction; read at
#: once through the cache, because more would only evict blocks that others need.
_CHECK_PART, _FREED_PART, _MAX_READ_PART = 64, 8, 16
#: Bytes of blocks in memory, and maximum bytes read at once through them.
_MEMORY_BYTES, _MAX_READ_OF_MEMORY = 1 << 26, 1 << 24
#: Minimum bytes of a file on a disk.
_DISK_BLOCK = 4_096
#: Seconds after which a draft is taken to be of a crashed process.
_DRAFT_SECONDS = 3_600
_DRAFT = ".draft-"
#: Magic, CRC-32 of key and block, length of the block.
_HEADER = struct.Struct("<4sIQ")
_MAGIC = b"gpbc"

Ranges = Sequence[tuple[int, int]]


class MemoryBlocks:
    """Blocks in memory, if a machine has no disk for them; the oldest are evicted first.

    Blocks are not pickled.
    """

    #: Maximum bytes to read at once through the cache; larger reads bypass it.
    max_read = _MAX_READ_OF_MEMORY

    def __init__(self) -> None:
        self._blocks: dict[str, bytes] = {}
        self._size = 0

    def __reduce__(self) -> tuple[type[MemoryBlocks], tuple[()]]:
        """Leave out the blocks."""
        return MemoryBlocks, ()

    def has(self, key: str) -> bool:
        """Whether a block exists."""
        return key in self._blocks

    def read(self, key: str) -> bytes | None:
        """Return a block; None if it is missing."""
        return self._blocks.get(key)

    def write(self, key: str, data: bytes) -> None:
        """Store a block."""
        self._size += len(data) - len(self._blocks.pop(key, b""))
        self._blocks[key] = data
        while self._size > _MEMORY_BYTES:
            self._size -= len(self._blocks.pop(next(iter(self._blocks))))


class BlockCache:
    """Blocks on a disk by their keys; the least recently used are evicted first.

    No method raises `OSError`: if the disk fails, the cache is empty.

    Parameters
    ----------
    folder : pathlib.Path
        Of this user alone.
    max_bytes : int
        Of all blocks.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder, self.max_bytes = folder, max_bytes
        self.max_read = max_bytes // _MAX_READ_PART
        self._unchecked = max_bytes  # evict at the first write: other processes have written before

    def has(self, key: str) -> bool:
        """Whether a block exists; it may be damaged."""
        return self._path(key).exists()

    def read(self, key: str) -> bytes | None:
        """Return a block; None if it is missing or damaged."""
        path = self._path(key)
        try:
            content = path.read_bytes()
        except OSError:
            return None
        data = content[_HEADER.size :]
        if content[: _HEADER.size] != _header(key, data):
            _delete(path)
            return None
        with suppress(OSError):  # another process has deleted it since
            os.utime(path)
        return data

    def write(self, key: str, data: bytes) -> None:
        """Store a block, if it fits."""
        path = self._path(key)
        draft = self._folder / f"{_DRAFT}{uuid4().hex}"
        try:
            draft.write_bytes(_header(key, data) + data)
            draft.replace(path)
        except OSError:  # the disk is full, or the folder is gone; the caller has the data
            _delete(draft)
            return
        self._unchecked += max(len(data), _DISK_BLOCK)
        if self._unchecked * _CHECK_PART >= self.max_bytes:
            self._unchecked = 0
            self._evict()

    def _evict(self) -> None:
        blocks = sorted(self._list())
        total = sum(size for _, size, _ in blocks)
        if total <= self.max_bytes:
            return
        limit = self.max_bytes - self.max_bytes // _FREED_PART
        for _, size, path in blocks:
            if total <= limit:
                return
            _delete(path)
            total -= size

    def _list(self) -> Iterator[tuple[float, int, Path]]:
        """Yield the time of last use, the size and the path of each block; delete old drafts."""
        with suppress(OSError), os.scandir(self._folder) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    if not entry.name.startswith(_DRAFT):
                        yield status.st_mtime, max(status.st_size, _DISK_BLOCK), Path(entry.path)
                    elif status.st_mtime < time.time() - _DRAFT_SECONDS:
                        _delete(Path(entry.path))

    def _path(self, key: str) -> Path:
        return self._folder / hashlib.sha256(key.encode()).hexdigest()


Blocks: TypeAlias = MemoryBlocks | BlockCache


def find_missing(cache: Blocks, file: str, ranges: Ranges) -> list[tuple[int, int]]:
    """Return the offset and length of each block that ranges need and the cache lacks."""
    numbers = {number for span in _spans(ranges) for number in span}
    missing = (number for number in sorted(numbers) if not cache.has(f"{file}/{number}"))
    return [(number * BLOCK, BLOCK) for number in missing]


def store_blocks(cache: Blocks, file: str, blocks: Ranges, contents: Iterable[bytes]) -> None:
    """Store the fetched contents of the blocks that `find_missing` returned."""
    for (offset, _), content in zip(blocks, contents, strict=True):
        cache.write(f"{file}/{offset // BLOCK}", content)


def read_through(
    cache: Blocks, file: str, ranges: Ranges, fetch: Callable[[Ranges], list[bytes]]
) -> list[bytes]:
    """Return ranges of a file that never changes, from the cache if it has them.

    Parameters
    ----------
    cache : Blocks
    file : str
        A key unique among all files.
    ranges : sequence of (int, int)
        Offset and length of each, in bytes. Bytes after the end of the file are left out.
    fetch : callable
        Reads ranges of the file; called at most once.
    """
    if sum(length for _, length in ranges) > cache.max_read:
        return fetch(ranges)
    spans = _spans(ranges)
    numbers = sorted({number for span in spans for number in span})
    cached = {number: cache.read(f"{file}/{number}") for number in numbers}
    blocks = {number: block for number, block in cached.items() if block is not None}
    misses = [number for number in numbers if number not in blocks]
    if misses:
        missing = [(number * BLOCK, BLOCK) for number in misses]
        contents = fetch(missing)
        store_blocks(cache, file, missing, contents)
        blocks.update(zip(misses, contents, strict=True))
    pieces = []
    for (offset, length), span in zip(ranges, spans, strict=True):
        begin = offset - span.start * BLOCK
        pieces.append(b"".join(blocks[number] for number in span)[begin : begin + length])
    return pieces


def _spans(ranges: Ranges) -> list[range]:
    """Return the numbers of the blocks of each range."""
    return [
        range(offset // BLOCK, -(-(offset + length) // BLOCK) if length else 0)
        for offset, length in ranges
    ]


def read_end_through(cache: Blocks, file: str, length: int, fetch: Callable[[int], bytes]) -> bytes:
    """Return the last bytes of a file that never changes; see `read_through`."""
    key = f"{file}/end"
    end = cache.read(key)
    if end is None or END <= len(end) < length:  # a shorter one is the whole file
        end = fetch(max(length, END))
        cache.write(key, end)
        if len(end) < BLOCK:  # the whole file
            cache.write(f"{file}/0", end)
    return end[max(len(end) - length, 0) :]


class BlockWriter:
    """Caches a file while it is written, because its next reader may be on this machine.

    For a file that is too large only the first blocks and its end are cached.

    Parameters
    ----------
    cache : Blocks, optional
        None: nothing is cached.
    file : str
        A key unique among all files.
    """

    def __init__(self, cache: Blocks | None, file: str) -> None:
        self._cache, self._file = cache, file
        self._rest, self._end, self._size = bytearray(), b"", 0

    def add(self, part: bytes) -> None:
        """Add the next bytes."""
        if self._cache is None:
            return
        self._end = (self._end + part[-END:])[-END:]
        if self._size > self._cache.max_read:
            return
        self._size += len(part)
        self._rest += part
        number = (self._size - len(self._rest)) // BLOCK
        while len(self._rest) >= BLOCK:
            self._cache.write(f"{self._file}/{number}", bytes(self._rest[:BLOCK]))
            del self._rest[:BLOCK]
            number += 1

    def add_all(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the next bytes, and add them."""
        for part in parts:
            self.add(part)
            yield part

    def finish(self) -> None:
        """Store the last block and the end of the file."""
        if self._cache is None:
            return
        if self._rest and self._size <= self._cache.max_read:
            self._cache.write(f"{self._file}/{self._size // BLOCK}", bytes(self._rest))
        self._cache.write(f"{self._file}/end", self._end)


def find_cache() -> BlockCache | None:
    """Return the cache of this machine and user; None if it is disabled or impossible.

    Raises
    ------
    InvalidOptionError
        If the environment has another limit than a number of bytes.
    """
    limit = os.environ.get(BYTES_VARIABLE) or str(_DEFAULT_BYTES)
    if not limit.isdecimal():
        raise InvalidOptionError(f"{BYTES_VARIABLE} is a number of bytes", value=repr(limit))
    max_bytes = int(limit)
    folders = os.environ.get(_SPARK_FOLDERS, "").split(",")
    base = folders[0] if folders[0] and Path(folders[0]).is_dir() else tempfile.gettempdir()
    return _open_cache(Path(base, f"gpu_windows-blocks-{os.geteuid()}"), max_bytes)


@lru_cache(maxsize=4)
def _open_cache(folder: Path, max_bytes: int) -> BlockCache | None:
    if max_bytes <= 0 or not _is_private(folder):
        return None
    return BlockCache(folder, max_bytes)


def _is_private(folder: Path) -> bool:
    """Create a folder if needed; return whether only this user can write to it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return False
    return (
        stat.S_ISDIR(status.st_mode)
        and status.st_uid == os.geteuid()
        and not stat.S_IMODE(status.st_mode) & 0o077
    )


def _header(key: str, data: bytes) -> bytes:
    return _HEADER.pack(_MAGIC, zlib.crc32(data, zlib.crc32(key.encode())), len(data))


def _delete(path: Path) -> None:
    with suppress(OSError):  # another process was first, or the folder is gone
        path.unlink()
