"""Writes micro-batches to a path, each in files of its own with a commit after them."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow.parquet as pq
from pyspark.sql.types import StructType

from gpu_windows.commits.records import Commit, Owner, Part, part_folder
from gpu_windows.errors import OutputError
from gpu_windows.runners.sink import SinkBatch, SinkQuery, SinkWriter
from gpu_windows.spark_glue.files.local_marker_files import (
    find_local_folder,
    read_local_markers,
    write_local_marker,
)
from gpu_windows.spark_glue.files.local_parquet import LocalParquet
from gpu_windows.spark_glue.files.marker_files import literal, write_marker
from gpu_windows.spark_glue.files.ownership import (
    check_not_taken_over,
    check_owns,
    claim,
    find_commit,
    taken_over,
)
from gpu_windows.spark_glue.files.part_files import write_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

logger = logging.getLogger(__name__)
#: Bytes of blobs per file. More files let more cores write.
_FILE_BYTES = 1 << 24


class ParquetWriter(SinkWriter):
    """Writes the outputs of a query to a path that it owns.

    Parameters
    ----------
    path : str
        The folder of all outputs.
    owner : Owner
        The query.
    """

    def __init__(self, path: str, owner: Owner) -> None:
        self._path = path
        self._owner = owner
        self._is_first = True
        self._here: Path | None = None  # the path, where it is on a disk of this machine
        self._local: LocalParquet | None = None

    def begin(self, query: SinkQuery) -> None:
        """Claim the path for the query.

        Raises
        ------
        OutputError
            If another query claimed it first.
        """
        claim(query, self._path, self._owner)

    def write(self, batch: SinkBatch) -> None:
        """Write a micro-batch unless it was written before; outputs without rows have no files.

        Raises
        ------
        OutputError
            If the path is another query's now, or the checkpoint an older copy.
        """
        if self._is_committed(batch):
            return
        parts = {
            name: self._write(name, batch, -(-size // _FILE_BYTES))
            for name, size in batch.sizes.items()
            if size
        }
        if parts:
            self._check_not_taken_over(batch.session)
            planned_ms = batch.planned_ms
            commit = Commit(self._owner.generation, batch.number, batch.rows, parts, planned_ms)
            if not self._write_commit(batch.session, commit):
                rule = (
                    f"another process has just written micro-batch {batch.number} of the same query"
                )
                raise OutputError(rule, value=self._path)

    def _is_committed(self, batch: SinkBatch) -> bool:
        """Return whether an earlier run has committed the micro-batch."""
        session = batch.session
        if not self._is_first:
            self._check_not_taken_over(session)
            return False
        self._is_first = False
        check_owns(session, self._path, self._owner)
        self._here = find_local_folder(session, self._path, self._owner.folder, self._owner.text)
        self._local = LocalParquet.of_session(session)
        found = find_commit(session, self._path, self._owner, batch.number)
        if found is not None and not batch.is_again(found.rows, found.planned_ms):
            other = "was planned at another time"
            if found.rows != batch.rows:
                other = f"took {found.rows} rows, not these {batch.rows}"
            rule = (
                f"micro-batch {batch.number} is there already and {other}: "
                "what comes before gw.stream has changed (then run the query once as it was), or "
                "the checkpoint is another one (then write to another path)"
            )
            raise OutputError(rule, value=self._path)
        return found is not None

    def _check_not_taken_over(self, session: SparkSession) -> None:
        if self._here is None:
            check_not_taken_over(session, self._path, self._owner)
        elif read_local_markers(self._here / self._owner.next_folder):
            raise taken_over(self._path)

    def _write_commit(self, session: SparkSession, commit: Commit) -> bool:
        """Write the commit of a micro-batch unless there is one; return whether this call did."""
        if self._here is not None:
            try:
                return write_local_marker(self._here / commit.folder, commit.text)
            except OSError:  # a disk without links, or one that only Spark may write to
                self._here = None
        return write_marker(session, f"{self._path}/{commit.folder}", commit.text)

    def _write(self, name: str, batch: SinkBatch, files: int) -> Part:
        """Write an output: few rows from this process, many by Spark."""
        return self._write_here(name, batch, files) or self._write_by_spark(name, batch, files)

    def _write_here(self, name: str, batch: SinkBatch, files: int) -> Part | None:
        if self._here is None or self._local is None:
            return None
        schema = StructType.fromJson(json.loads(self._owner.schemas[name]))
        table = batch.read_table(name) if self._local.takes(schema) else None
        if table is None:
            return None
        folder = self._part_folder(name, batch)
        try:
            self._local.write(table, schema, self._here / folder, files)
        except OSError as error:  # such as a disk that only Spark may write to
            logger.warning("Spark writes results from now on, for this process cannot: %s", error)
            self._here = None
            return None
        return Part(folder, len(table))

    def _write_by_spark(self, name: str, batch: SinkBatch, files: int) -> Part:
        frame, folder = batch.read(name, files), self._part_folder(name, batch)
        write_folder(frame, f"{self._path}/{folder}")
        return Part(folder, self._count_rows(frame, folder))

    def _part_folder(self, name: str, batch: SinkBatch) -> str:
        return part_folder(name, self._owner.generation, batch.number, uuid4().hex[:8])

    def _count_rows(self, frame: DataFrame, folder: str) -> int:
        """Return the number of rows in written files, from their footers.

        An `Observation` would wait for an event, which Spark's bus of listeners may drop.
        """
        files = [] if self._here is None else list((self._here / folder).glob("*.parquet"))
        if files:
            return sum(pq.read_metadata(file).num_rows for file in files)
        written = frame.sparkSession.read.schema(frame.schema)
        return written.parquet(literal(f"{self._path}/{folder}")).count()
