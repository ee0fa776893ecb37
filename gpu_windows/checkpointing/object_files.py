"""Files of a checkpoint in an object store: S3, Google Cloud Storage, Azure."""

from __future__ import annotations

import io
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from errno import EEXIST
from functools import partial
from itertools import chain
from typing import Any, BinaryIO
from uuid import uuid4

from gpu_windows.checkpointing.block_cache import (
    BLOCK,
    Blocks,
    BlockWriter,
    MemoryBlocks,
    find_cache,
    find_missing,
    read_end_through,
    read_through,
    store_blocks,
)
from gpu_windows.checkpointing.byte_ranges import RangeReader, cut_range, merge_ranges
from gpu_windows.checkpointing.files import CheckpointFiles
from gpu_windows.checkpointing.object_stores import (
    ObjectStore,
    ObjectUrl,
    Options,
    import_obstore,
    open_store,
    parse_url,
    store_errors,
)
from gpu_windows.errors import CheckpointError

#: Prefixes of names of cached files: those that are written once and read often.
_CACHED = "state/"
#: Files of up to this many bytes are written by one request; larger ones in parts of this size,
#: some of them concurrently.
_PART, _PARTS = 5 << 20, 4
#: Ranges at most this many bytes apart are read by one request; and the bytes per request of a file
#: that is read in pieces.
_GAP, _READ_AHEAD = 1 << 16, 1 << 20
#: Concurrent requests: threads, and requests of each, which is the library's maximum.
_THREADS, _REQUESTS = 16, 10
#: Seconds before each attempt to create a file.
_CONFLICT_WAITS_S = (0.0, 0.1, 0.5)
#: Retries of a request; and of requests whose answer decides whether a query may start.
_RETRIES, _FEW_RETRIES = 10, 2


@dataclass(frozen=True)
class ObjectFiles(CheckpointFiles):
    """Files in an object store, which each process opens when it is first used.

    Parameters
    ----------
    root : str
        URL of the folder: see `gpu_windows.checkpointing.object_stores.parse_url`.
    options : tuple of (str, str)
        Options of the store, including credentials; the rest is in the environment.
    retries : int
        Retries of a failed request.

    Notes
    -----
    A file is complete or absent, even if it is written in parts. Every operation may
    raise what `gpu_windows.checkpointing.object_stores.store_errors` does.
    """

    options: Options = field(default=(), repr=False)
    retries: int = _RETRIES
    _memory: MemoryBlocks = field(
        default_factory=MemoryBlocks, init=False, repr=False, compare=False
    )
    is_remote = True

    def holds(self, other: CheckpointFiles) -> bool:
        """Whether another folder is this one, or one below it; equivalent schemes are equal."""
        if not isinstance(other, ObjectFiles):
            return False
        own, inner = self._url, other._url
        is_same = (own.store, own.place) == (inner.store, inner.place)
        return is_same and f"{inner.path}/".startswith(f"{own.path}/")

    @property
    def spark_url(self) -> str:
        """URL of the folder."""
        return self.root

    def check_create(self) -> None:
        """Raise `CheckpointError` for a store that ignores the condition of `create`."""
        few = replace(self, retries=min(self.retries, _FEW_RETRIES))
        name = f"probe/{uuid4().hex}"
        try:
            few._put_new(name, b"1")
            few._put_new(name, b"2")
        except FileExistsError:
            return
        finally:
            few.delete(name)
        rule = (
            "the store of a checkpoint must support creating an object only if there is none "
            "(If-None-Match), and this one replaces it"
        )
        raise CheckpointError(rule, value=self.root)

    def create(self, name: str, data: bytes) -> bool:
        """Create a file unless its name exists, by a conditional request.

        S3 also refuses it (409) during another request for the name, perhaps the first attempt of
        this one: afterwards there is no file, or this one.
        """
        for wait_s in _CONFLICT_WAITS_S:
            time.sleep(wait_s)
            with suppress(FileExistsError):
                self._put_new(name, data)
                return True
            with suppress(FileNotFoundError):  # a conflict; or it was swept since
                return self.read(name) == data
        return False

    def write(self, name: str, parts: Iterable[bytes]) -> None:
        """Write a file with a name unique to this attempt; large files replace one of their name.

        A small file fails if there is another file of its name.
        """
        first, rest = _take(iter(parts), _PART)
        writer = BlockWriter(find_cache() if _is_cached(name) else None, self._key(name))
        if rest is not None:
            with self._request(name) as (obstore, store, path):
                every = writer.add_all(chain([first], rest))
                obstore.put(store, path, every, chunk_size=_PART, max_concurrency=_PARTS)
        elif self.create(name, first):
            writer.add(first)
        else:
            raise FileExistsError(EEXIST, "another file of this name is there", name)
        writer.finish()

    def read(self, name: str) -> bytes:
        """Return a file."""
        with self._request(name) as (obstore, store, path):
            return bytes(obstore.get(store, path).bytes())

    def prefetch(self, ranges: Mapping[str, Sequence[tuple[int, int]]]) -> None:
        """Fetch the ranges of several files that are not cached, by concurrent requests."""
        cache = self._blocks
        missing = {
            name: find_missing(cache, self._key(name), each)
            for name, each in ranges.items()
            if _is_cached(name)
        }
        parts = [
            (name, blocks[begin : begin + _REQUESTS])
            for name, blocks in missing.items()
            for begin in range(0, len(blocks), _REQUESTS)
        ]
        if not parts or sum(map(len, missing.values())) * BLOCK > cache.max_read:
            return
        with ThreadPoolExecutor(min(len(parts), _THREADS)) as threads:
            contents = threads.map(lambda part: self._fetch_ranges(*part), parts)
            for (name, blocks), each in zip(parts, contents, strict=True):
                store_blocks(cache, self._key(name), blocks, each)

    def read_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return ranges of bytes of a file; adjacent ones are read by one request."""
        fetch = partial(self._fetch_ranges, name)
        if not _is_cached(name):
            return fetch(ranges)
        return read_through(self._blocks, self._key(name), ranges, fetch)

    def read_end(self, name: str, length: int) -> bytes:
        """Return the last bytes of a file."""
        fetch = partial(self._fetch_end, name)
        if not _is_cached(name):
            return fetch(length)
        return read_end_through(self._blocks, self._key(name), length, fetch)

    @contextmanager
    def open(self, name: str) -> Iterator[BinaryIO]:
        """Open a file to read it in pieces; reading raises if it is missing."""

        def read(begin: int, length: int) -> bytes:
            return self.read_ranges(name, [(begin, length)])[0]

        reader = RangeReader(read, partial(self._size, name))
        with io.BufferedReader(reader, _READ_AHEAD) as file:
            yield file

    def exists(self, name: str) -> bool:
        """Whether there is a file of this name."""
        try:
            self._size(name)
        except FileNotFoundError:
            return False
        return True

    def entries(self) -> list[str] | None:
        """Return the names of files and folders directly in this folder, in order."""
        files, folders = self._list("")
        return sorted({*files, *folders}) or None

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder, in order."""
        files, _ = self._list(folder)
        return sorted(f"{folder}/{name}" for name in files)

    def walk(self, folder: str) -> list[str]:
        """Return the names of the files in a folder and in those below it, in order.

        It lists folder by folder, because Hadoop's markers of folders would look like files.
        """
        files, folders = self._list(folder)
        below = (self.walk(f"{folder}/{name}") for name in folders)
        return sorted(chain((f"{folder}/{name}" for name in files), *below))

    def drafts(self, folder: str) -> dict[str, str]:
        """Return an empty mapping: incomplete files do not exist in an object store."""
        del folder
        return {}

    def delete(self, name: str) -> None:
        """Delete a file, if it exists."""
        with suppress(FileNotFoundError), self._request(name) as (obstore, store, path):
            obstore.delete(store, path)

    def delete_all(self, names: Iterable[str]) -> None:
        """Delete the files that exist, many by one request."""
        every = list(names)
        if not every:
            return
        try:
            with self._request(every[0]) as (obstore, store, _):
                obstore.delete(store, [self._path(name) for name in every])
        except FileNotFoundError:  # a store that says so of each
            super().delete_all(every)

    # ---- requests

    def _put_new(self, name: str, data: bytes) -> None:
        with self._request(name) as (obstore, store, path):
            obstore.put(store, path, data, mode="create")

    def _size(self, name: str) -> int:
        with self._request(name) as (obstore, store, path):
            size: int = obstore.head(store, path)["size"]
            return size

    def _list(self, folder: str) -> tuple[list[str], list[str]]:
        """Return the names of files and folders in a folder, without it."""
        with self._request(folder) as (obstore, store, path):
            listing = obstore.list_with_delimiter(store, path)
        begin = f"{path}/"  # what marks a folder for Hadoop has the name of the folder
        paths = [entry["path"] for entry in listing["objects"]]
        files = [path.removeprefix(begin) for path in paths if path.startswith(begin)]
        return files, [path.removeprefix(begin) for path in listing["common_prefixes"]]

    def _fetch_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        spans = merge_ranges(ranges, _GAP)
        try:
            contents = self._fetch_spans(name, spans)
        except (FileNotFoundError, PermissionError):
            raise
        except OSError:  # perhaps as a span begins behind the end of the file
            size = self._size(name)
            if all(begin < size for begin, _ in spans):
                raise
            spans = [(begin, end) for begin, end in spans if begin < size]
            contents = self._fetch_spans(name, spans)
        return [cut_range(spans, contents, offset, length) for offset, length in ranges]

    def _fetch_spans(self, name: str, spans: Sequence[tuple[int, int]]) -> list[Any]:
        if not spans:
            return []
        starts, ends = zip(*spans, strict=True)
        with self._request(name) as (obstore, store, path):
            contents: list[Any] = obstore.get_ranges(
                store, path, starts=starts, ends=ends, coalesce=0
            )
            return contents

    def _fetch_end(self, name: str, length: int) -> bytes:
        if length and self._url.scheme.startswith("abfs"):  # Azure has no ranges from the end
            begin = max(self._size(name) - length, 0)
            return self._fetch_ranges(name, [(begin, length)])[0]
        try:
            with self._request(name) as (obstore, store, path):
                answer = obstore.get(store, path, options={"range": {"suffix": max(length, 1)}})
                return bytes(answer.bytes())[:length]
        except (FileNotFoundError, PermissionError):
            raise
        except OSError:  # of an empty file there is no range
            if self._size(name):
                raise
            return b""

    @contextmanager
    def _request(self, name: str) -> Iterator[tuple[Any, ObjectStore, str]]:
        """Yield the library, the store and the path of a file; see Notes for the errors."""
        obstore = import_obstore()
        store = open_store(self._url, self.options, self.retries)
        with store_errors(name, self.options):
            yield obstore, store, self._path(name)

    @property
    def _blocks(self) -> Blocks:
        """The cache of state files: on the disk of this machine, else in memory."""
        return find_cache() or self._memory

    @property
    def _url(self) -> ObjectUrl:
        return parse_url(self.root)

    def _path(self, name: str) -> str:
        return f"{self._url.path}/{name}" if name else self._url.path

    def _key(self, name: str) -> str:
        """Return a key that is unique among the files of all stores."""
        return f"{dict(self.options).get('endpoint', '')} {self.root}/{name}"


def _is_cached(name: str) -> bool:
    return name.startswith(_CACHED)


def _take(parts: Iterator[bytes], limit: int) -> tuple[bytes, Iterator[bytes] | None]:
    """Return the first parts as one, and the others; None if there are none."""
    first, size = list[bytes](), 0
    for part in parts:
        first.append(part)
        size += len(part)
        if size > limit:
            return b"".join(first), parts
    return b"".join(first), None
