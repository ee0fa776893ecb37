"""Results of another query as a stream: complete micro-batches, each once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from gpu_windows.commits.completeness import Missing, select_files
from gpu_windows.commits.path_log import NOTHING, PathLog, Position
from gpu_windows.commits.records import Commit
from gpu_windows.errors import OutputError
from gpu_windows.operators.state.schemas import add_missing
from gpu_windows.scans.splits import OPEN_BYTES, fill_bins, split_bytes
from gpu_windows.spark_glue.columns.types import to_arrow_schema
from gpu_windows.spark_glue.contract.available_now import SupportsTriggerAvailableNow

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

#: Micro-batches whose files are listed concurrently.
_THREADS = 16
#: Rows of a batch.
_ROWS = 1 << 16


class CommitSource(DataSource):
    """Spark's source of `gpu_windows.read_output_stream`.

    Its options are ``uri``, ``output``, ``missing``, ``micro_batch`` (the column of the number, the
    last one of the schema), ``max_micro_batches``, ``tasks`` (how many run at a time) and
    ``task_bytes`` (of files, that one reads at most).
    """

    @classmethod
    def name(cls) -> str:
        """Return the name for ``format``."""
        return "gpu_windows"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return the reader of a stream."""
        return CommitReader(schema, self.options)


@dataclass(frozen=True)
class File:
    """A file of a micro-batch, and its rows and bytes."""

    path: str
    number: int
    rows: int
    length: int

    @property
    def cost(self) -> int:
        """Cost of reading it, in bytes."""
        return self.length + OPEN_BYTES


@dataclass
class Files(InputPartition):
    """The files that a task reads, by micro-batch."""

    files: tuple[File, ...]


class CommitReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the files of micro-batches; an offset is the last micro-batch that was read.

    Parameters
    ----------
    schema : StructType
    options : mapping
        Of `CommitSource`.
    """

    def __init__(self, schema: StructType, options: Mapping[str, str]) -> None:
        self._log = PathLog(options["uri"])
        self._output = options["output"]
        self._missing: Missing = "skip" if options.get("missing") == "skip" else "raise"
        self._adds_number = "micro_batch" in options
        self._schema = to_arrow_schema(schema)
        limit = options.get("max_micro_batches")
        self._max_micro_batches = None if limit is None else int(limit)
        self._tasks, self._task_bytes = int(options["tasks"]), int(options["task_bytes"])
        self._end: Position | None = None
        self._last_offset = NOTHING

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - as Spark calls it
        """Return where a query begins: before the first micro-batch."""
        return _offset(NOTHING)

    def latestOffset(  # noqa: N802
        self, start: dict[str, int] | None = None, limit: Any = None
    ) -> dict[str, int]:
        """Return the end of the next micro-batch.

        Older versions of Spark do not pass its start, and read everything.

        Raises
        ------
        OutputError
            If the path holds less than was read: an offset that goes back would lose or repeat
            rows. It is raised here, before Spark writes the offset.
        """
        del limit  # `max_micro_batches` counts micro-batches
        last = self._end or self._log.last()
        after = self._last_offset if start is None else _position(start)
        if last < after:
            rule = "the path holds less than was read from it before: it was replaced"
            raise OutputError(rule, value=self._log.uri)
        if start is not None and self._max_micro_batches is not None:
            found = list(islice(self._log.between(after, last), self._max_micro_batches))
            last = found[-1].position if found else after
        self._last_offset = last
        return _offset(last)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Record the current end: a query with this trigger stops there."""
        self._end = self._log.last()

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[Files]:
        """Return the files between two offsets, whose footers are read, several at once.

        A task reads as many as one of Spark's own readers of files would.

        Raises
        ------
        OutputError
            If a micro-batch lacks rows that it has written.
        """
        commits = self._log.between(_position(start), _position(end))
        having = [commit for commit in commits if self._output in commit.outputs]
        with ThreadPoolExecutor(_THREADS) as pool:
            files = list(chain.from_iterable(pool.map(self._files, having)))
        size = split_bytes(files, self._tasks, self._task_bytes)
        bins = fill_bins(((file.number, file) for file in files), size)
        return [Files(tuple(file for _, file in sorted(each, key=itemgetter(0)))) for each in bins]

    def _files(self, commit: Commit) -> list[File]:
        sizes = self._log.sizes_of_files(commit.outputs[self._output].folder)
        rows = {name: size.rows for name, size in sizes.items()}
        names = select_files(self._log.uri, commit, self._output, rows, self._missing)
        return [File(name, commit.number, rows[name] or 0, sizes[name].length) for name in names]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of files, by micro-batch; in a Spark task."""
        assert isinstance(partition, Files)
        for file in partition.files:
            yield from self._read_file(file)

    def _read_file(self, file: File) -> Iterator[pa.RecordBatch]:
        names = self._schema.names[:-1] if self._adds_number else self._schema.names
        with self._log.open(file.path) as opened:  # type: ignore[attr-defined]
            # Spark writes timestamps of 96 bits unless told otherwise.
            parquet = pq.ParquetFile(opened, coerce_int96_timestamp_unit="us")
            if parquet.metadata.num_rows != file.rows:
                rule = f"a file of micro-batch {file.number} had {file.rows} rows before"
                raise OutputError(rule, value=f"{file.path}: {parquet.metadata.num_rows}")
            there = {*parquet.schema_arrow.names}
            lacking = pa.schema([self._schema.field(n) for n in names if n not in there])
            for batch in parquet.iter_batches(_ROWS, columns=[n for n in names if n in there]):
                table = add_missing(pa.Table.from_batches([batch]), lacking)
                if self._adds_number:
                    numbers = pa.array(np.full(len(table), file.number))
                    table = table.append_column(self._schema.names[-1], numbers)
                table = table.select(self._schema.names).cast(self._schema)
                yield from table.combine_chunks().to_batches()


def _offset(position: Position) -> dict[str, int]:
    generation, number = position
    return {"generation": generation, "micro_batch": number}


def _position(offset: dict[str, int]) -> Position:
    return offset["generation"], offset["micro_batch"]
