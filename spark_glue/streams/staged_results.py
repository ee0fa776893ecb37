"""Reads the staged results of a micro-batch as DataFrames or tables, any number of times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import StringType, StructType

from gpu_windows.checkpointing.files import CheckpointFiles
from gpu_windows.checkpointing.staged_file import read_staged_file
from gpu_windows.checkpointing.state_commit import StagedFile
from gpu_windows.operators.state.schemas import add_missing
from gpu_windows.spark_glue.tasks.packing import from_ipc
from gpu_windows.spark_glue.tasks.worker_step import map_in_workers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Bytes of results up to which the driver makes a DataFrame; more are read by tasks.
_MAX_DRIVER_BYTES = 1 << 20
#: Bytes of results up to which the driver makes an Arrow table.
_MAX_TABLE_BYTES = 1 << 26
_NAME = StructType().add("file", StringType())


def _read_tables(
    files: CheckpointFiles, name: str, kind: int, schema: pa.Schema
) -> Iterator[pa.Table]:
    """Yield the rows of a kind in a file; columns that files of an earlier start lack are null."""
    for blob in read_staged_file(files, name, kind):
        yield add_missing(from_ipc(blob), schema).select(schema.names).cast(schema)


@dataclass(frozen=True)
class StagedResults:
    """The staged results of a micro-batch.

    Parameters
    ----------
    session : SparkSession
    files : CheckpointFiles
    staged_files : tuple of StagedFile
    """

    session: SparkSession
    files: CheckpointFiles
    staged_files: tuple[StagedFile, ...]

    @property
    def sizes(self) -> Counter[int]:
        """Kinds of rows to the bytes of their blobs; 0 for kinds without rows."""
        found: Counter[int] = Counter()
        for each in self.staged_files:
            found.update(dict(each.sizes))
        return found

    def is_small(self, kind: int) -> bool:
        """Whether the rows of a kind are few enough for a table on the driver."""
        return self.sizes[kind] <= _MAX_TABLE_BYTES

    def table(self, kind: int, schema: pa.Schema) -> pa.Table:
        """Return the rows of a kind."""
        names = self._names(kind)
        tables = [each for name in names for each in _read_tables(self.files, name, kind, schema)]
        return pa.concat_tables([*tables, schema.empty_table()])

    def rows(
        self, kind: int, schema: pa.Schema, spark_schema: StructType, partitions: int | None
    ) -> DataFrame:
        """Return the rows of a kind, in at most ``partitions`` partitions.

        None: as many as files. Few rows are in one partition.
        """
        if self.sizes[kind] <= _MAX_DRIVER_BYTES:
            table = self.table(kind, schema)
            return self.session.createDataFrame(table, spark_schema).coalesce(1)
        names = self._names(kind)
        frame = self.session.createDataFrame(pa.table({"file": names}), _NAME)
        frame = frame.repartition(min(len(names), partitions or len(names)))
        return map_in_workers(frame, ReadStaged(self.files, kind, schema), spark_schema)

    def _names(self, kind: int) -> list[str]:
        return [each.name for each in self.staged_files if kind in dict(each.sizes)]


@dataclass(frozen=True)
class ReadStaged:
    """Reads the rows of a kind from staged files, in Spark tasks that get their names."""

    files: CheckpointFiles
    kind: int
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run in a Spark task: names of files to rows."""
        for batch in batches:
            for name in batch.column(0).to_pylist():
                for table in _read_tables(self.files, name, self.kind, self.schema):
                    yield from table.to_batches()
