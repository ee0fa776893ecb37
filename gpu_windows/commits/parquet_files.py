"""Writes Parquet files of results in pieces, while the results are computed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from gpu_windows.checkpointing.files import CheckpointFiles
from gpu_windows.commits.write_target import WrittenFile
from gpu_windows.errors import OutputError

#: Rows and bytes of a row group, at most; it is held in memory.
_GROUP_ROWS, _GROUP_BYTES = 1 << 20, 64 << 20


@dataclass(frozen=True)
class ParquetEncoding:
    """Encoding of Parquet files.

    Parameters
    ----------
    codec : str
        PyArrow's name of the compression.
    int96 : bool
        Whether timestamps are 96 bits long.
    notes : mapping of str to str
        Metadata of the file's footer.
    """

    codec: str = "SNAPPY"
    int96: bool = False
    notes: Mapping[str, str] = field(default_factory=dict)

    def encode(self, tables: Iterable[pa.Table], schema: pa.Schema) -> Iterator[bytes]:
        """Yield the bytes of a file that has tables as its row groups."""
        sink = _Pieces()
        with pq.ParquetWriter(
            sink,
            schema,
            compression=self.codec,
            use_deprecated_int96_timestamps=self.int96,
            store_schema=False,
        ) as writer:
            for table in tables:
                writer.write_table(table)
                yield from sink.take()
            writer.add_key_value_metadata({**self.notes})
        yield from sink.take()


class _Pieces:
    """A file-like buffer from which written bytes are taken."""

    closed = False

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, piece: Any) -> int:
        self._pieces.append(bytes(piece))
        return len(self._pieces[-1])

    def take(self) -> list[bytes]:
        pieces, self._pieces = self._pieces, []
        return pieces

    def flush(self) -> None:
        """Do nothing: pieces are taken after each row group."""

    def close(self) -> None:
        """Do nothing: the last pieces are taken afterwards."""


def write_parquet_file(
    files: CheckpointFiles,
    number: int,
    tables: Iterable[pa.Table],
    schema: pa.Schema,
    encoding: ParquetEncoding,
) -> WrittenFile | None:
    """Write a file of results with a name unique to this attempt; return None without rows.

    Parameters
    ----------
    files : CheckpointFiles
        Of the folder.
    number : int
        Of the task.
    tables : iterable of pyarrow.Table
        The results, as they come.
    schema : pyarrow.Schema
        Of all of them.
    encoding : ParquetEncoding

    Raises
    ------
    OutputError
        If the disk or the store does not take it.
    """
    name = f"part-{number:05}-{uuid4().hex[:12]}.parquet"
    rows, size, of_results = 0, 0, list[Exception]()

    def groups() -> Iterator[pa.Table]:
        nonlocal rows
        try:
            for table in gather_row_groups(tables):
                rows += len(table)
                yield table
        except Exception as error:
            of_results.append(error)
            raise

    def pieces() -> Iterator[bytes]:
        nonlocal size
        for piece in encoding.encode(chain([first], source), schema):
            size += len(piece)
            yield piece

    source = groups()
    first = next(source, None)
    if first is None:
        return None
    try:
        files.write(name, pieces())
    except BaseException as error:
        with suppress(OSError):  # what is left has a name that nobody refers to
            files.delete(name)
        if isinstance(error, OSError) and error not in of_results:
            rule = f"results cannot be written: {error}"
            raise OutputError(rule, value=f"{files.root}/{name}") from error
        raise
    return WrittenFile(name, rows, size)


def gather_row_groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield tables with the rows of a row group each; empty tables are dropped."""
    pending, rows, size = list[pa.Table](), 0, 0
    for table in tables:
        for begin in range(0, len(table), _GROUP_ROWS):
            part = table.slice(begin, _GROUP_ROWS)
            if pending and (rows + len(part) > _GROUP_ROWS or size + part.nbytes > _GROUP_BYTES):
                yield pa.concat_tables(pending)
                pending, rows, size = [], 0, 0
            pending.append(part)
            rows, size = rows + len(part), size + part.nbytes
    if pending:
        yield pa.concat_tables(pending)


def count_written(files: CheckpointFiles) -> list[WrittenFile]:
    """Return the Parquet files that Spark has written to a folder, with rows from their footers.

    Raises
    ------
    OSError
    """
    found = []
    for name in files.entries() or []:
        if name.endswith(".parquet"):
            with files.open(name) as opened:
                rows = pq.read_metadata(opened).num_rows
                size = opened.seek(0, 2)
            found.append(WrittenFile(name, rows, size))
    return found
