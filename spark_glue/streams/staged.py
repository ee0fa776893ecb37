"""Staged results of a micro-batch as DataFrames, as often as they are asked for."""

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
from gpu_windows.spark_glue.tasks.freeze_gc import spare_modules
from gpu_windows.spark_glue.tasks.packing import from_ipc

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Bytes of results that become a DataFrame on the driver; more are read by tasks.
_MAX_DRIVER_BYTES = 1 << 20
#: Bytes of results that become a table there: some files of them.
_MAX_TABLE_BYTES = 1 << 26
_NAME = StructType().add("file", StringType())


def _read_tables(
    files: CheckpointFiles, name: str, kind: int, schema: pa.Schema
) -> Iterator[pa.Table]:
    """Yield the rows of a kind in a file; one of an earlier start may lack columns: null."""
    for blob in read_staged_file(files, name, kind):
        yield add_missing(from_ipc(blob), schema).select(schema.names).cast(schema)


@dataclass(frozen=True)
class StagedResults:
    """The staged results of a micro-batch.

    Parameters
    ----------
    session : SparkSession
    files : CheckpointFiles
    staged : tuple of StagedFile
    """

    session: SparkSession
    files: CheckpointFiles
    staged: tuple[StagedFile, ...]

    @property
    def sizes(self) -> Counter[int]:
        """Kinds of rows to the bytes of their blobs; 0 of those that there are none of."""
        found: Counter[int] = Counter()
        for each in self.staged:
            found.update(dict(each.sizes))
        return found

    def is_few(self, kind: int) -> bool:
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
        """Return the rows of a kind, in so many partitions at most.

        None: as there are files; few rows are in one.
        """
        if self.sizes[kind] <= _MAX_DRIVER_BYTES:
            table = self.table(kind, schema)
            return self.session.createDataFrame(table, spark_schema).coalesce(1)
        names = self._names(kind)
        frame = self.session.createDataFrame(pa.table({"file": names}), _NAME)
        frame = frame.repartition(min(len(names), partitions or len(names)))
        return frame.mapInArrow(ReadStaged(self.files, kind, schema), spark_schema)

    def _names(self, kind: int) -> list[str]:
        return [each.name for each in self.staged if kind in dict(each.sizes)]


@dataclass(frozen=True)
class ReadStaged:
    """Read the rows of a kind in staged files, by name: tasks of Spark."""

    files: CheckpointFiles
    kind: int
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run in a Spark task: names of files to rows."""
        spare_modules()
        for batch in batches:
            for name in batch.column(0).to_pylist():
                for table in _read_tables(self.files, name, self.kind, self.schema):
                    yield from table.to_batches()
