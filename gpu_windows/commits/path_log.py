"""Finds complete micro-batches at a path, without Spark, while a query writes there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import NamedTuple
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from gpu_windows.checkpointing.local_files import LocalFiles
from gpu_windows.commits.completeness import select_files
from gpu_windows.commits.marker_files import HIDDEN, numbered_folders, read_markers
from gpu_windows.commits.records import BLOCK, COMMITS, OWNERS, RESULT, Commit, Owner
from gpu_windows.errors import OutputError

#: A generation and the number of a micro-batch.
Position = tuple[int, int]
#: Before all micro-batches.
NOTHING: Position = (-1, -1)

#: Hadoop's schemes of file systems to Arrow's.
_SCHEMES = {"s3a": "s3", "s3n": "s3"}
#: Characters that Hadoop does not quote in URIs.
_ASCII = "".join(map(chr, range(33, 127)))


class FileSize(NamedTuple):
    """Rows in the footer of a file, None without a footer; and the bytes of the file."""

    rows: int | None
    length: int


@dataclass(frozen=True)
class PathLog:
    """The complete micro-batches at a path; only new ones are listed.

    Parameters
    ----------
    uri : str
        The path, with its scheme where it is not local: ``s3a://bucket/out``. It is read by
        Arrow's file systems, which may need credentials or libhdfs.
    """

    uri: str

    def between(self, after: Position, until: Position | None = None) -> Iterator[Commit]:
        """Yield the micro-batches after one, up to another if one is given, in order."""
        for generation, folder in self._list_numbers(COMMITS, after[0]):
            first = after[1] if generation == after[0] else -1
            for number, path in self._in_generation(folder, first):
                if until is not None and (generation, number) > until:
                    return
                text = self._text(path)
                if text is not None:
                    yield Commit.from_text(text)

    def last(self) -> Position:
        """Return the last micro-batch, or `NOTHING`.

        Raises
        ------
        OutputError
            If there are no results: they were moved, or cannot be reached.
        """
        if not self._list_infos(OWNERS):
            raise OutputError("the path must hold what write_stream wrote there", value=self.uri)
        for generation, folder in reversed(self._list_numbers(COMMITS)):
            for _, block in reversed(self._list_numbers(folder)):
                for number, path in reversed(self._list_numbers(block)):
                    if self._text(path) is not None:
                        return generation, number
        return NOTHING

    def sizes_of_files(self, folder: str) -> dict[str, FileSize]:
        """Return the Parquet files of a folder below the path, for `open`, and their sizes."""
        found = sorted(self._list_infos(folder), key=lambda info: info.path)
        parquet = [info for info in found if info.base_name.endswith(".parquet")]
        return {info.path: FileSize(self._footer_rows(info.path), info.size) for info in parquet}

    def _footer_rows(self, file: str) -> int | None:
        try:
            with self._system[0].open_input_file(file) as opened:
                return int(pq.read_metadata(opened).num_rows)
        except (pa.ArrowInvalid, FileNotFoundError):  # no Parquet, or gone since it was listed
            return None

    def open(self, file: str) -> object:
        """Open one of `sizes_of_files`."""
        return self._system[0].open_input_file(file)

    @cached_property
    def _system(self) -> tuple[fs.FileSystem, str]:
        try:
            return file_system(self.uri)
        except (ValueError, OSError, NotImplementedError) as error:
            rule = f"a path that is read as a stream must be on a file system of Arrow: {error}"
            raise OutputError(rule, value=self.uri) from error

    def _in_generation(self, folder: str, after: int) -> Iterator[tuple[int, str]]:
        for _, block in self._list_numbers(folder, max(after, 0) // BLOCK):
            yield from self._list_numbers(block, after + 1)

    def _list_numbers(self, folder: str, first: int = 0) -> list[tuple[int, str]]:
        """Return the folders below the path whose names are numbers, from a first number on."""
        names = (info.base_name for info in self._list_infos(folder))
        found = ((int(name), f"{folder}/{name}") for name in names if name.isdigit())
        return sorted(each for each in found if each[0] >= first)

    def _list_infos(self, folder: str) -> list[fs.FileInfo]:
        system, root = self._system
        return system.get_file_info(  # type: ignore[no-any-return]
            fs.FileSelector(f"{root}/{folder}", allow_not_found=True)
        )

    def _text(self, folder: str) -> str | None:
        """Return the record in a folder, the first of several; None before it is written."""
        texts = []
        for info in self._list_infos(folder):
            if not info.base_name.startswith(HIDDEN):
                with self._system[0].open_input_file(info.path) as file:
                    texts.append(file.read().decode())
        return min(filter(None, texts), default=None)


def file_system(uri: str) -> tuple[fs.FileSystem, str]:
    """Return the file system of a URI of Hadoop's, and the path there.

    Raises
    ------
    ValueError, OSError, NotImplementedError
        If Arrow has none for it.
    """
    scheme, separator, rest = quote(uri, safe=_ASCII).partition(":")
    system, path = fs.FileSystem.from_uri(f"{_SCHEMES.get(scheme, scheme)}{separator}{rest}")
    return system, path.rstrip("/")


def committed_files(path: str) -> list[str]:
    """Return the Parquet files of complete micro-batches, or of the last complete write.

    Parameters
    ----------
    path : str
        Of results, on a local disk.

    Raises
    ------
    OutputError
        If no write is complete, or a file is missing.
    """
    files, log = LocalFiles(path), PathLog(path)
    commits = list(log.between(NOTHING))
    newest = read_markers(files, numbered_folders(files, OWNERS)[-1])
    last = [Owner.from_text(text) for text in newest]
    if last[0].is_bounded:
        if not commits:
            raise OutputError("no write to the path is complete: write it again", value=path)
        commits = commits[-1:]
    found: list[str] = []
    for commit in commits:
        part = commit.outputs.get(RESULT)
        if part is not None:
            sizes = log.sizes_of_files(part.folder)
            names = {PurePosixPath(file).name: size.rows for file, size in sizes.items()}
            there = part.choose_files(names)
            readable = select_files(path, commit, RESULT, there, "raise")
            found += [f"{path}/{part.folder}/{name}" for name in readable]
    return found
