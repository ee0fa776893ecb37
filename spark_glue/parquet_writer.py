"""Writes micro-batches to a path, each in files of its own, and then says that it is complete."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from pyspark.sql import Observation
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

from gpu_windows.commits.records import Commit, Owner, Part, part_folder
from gpu_windows.errors import OutputError
from gpu_windows.runners.sink import SinkBatch, SinkQuery, SinkWriter
from gpu_windows.spark_glue.ownership import (
    check_not_taken_over,
    check_owns,
    claim,
    known_commit,
)
from gpu_windows.spark_glue.texts import put_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Bytes of blobs that make a file. More files let more cores write.
_FILE_BYTES = 1 << 24


class ParquetWriter(SinkWriter):
    """Writes what a query gives to a path that it owns.

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

    def begin(self, query: SinkQuery) -> None:
        """Note at the path, and in the checkpoint, that the path is the query's.

        Raises
        ------
        OutputError
            If another query was faster.
        """
        claim(query, self._path, self._owner)

    def write(self, batch: SinkBatch) -> None:
        """Write a micro-batch, unless it was written before; an output without rows leaves nothing.

        Raises
        ------
        OutputError
            If the path is another query's now, or the checkpoint an older copy.
        """
        if self._is_committed(batch):
            return
        attempt = uuid4().hex[:8]
        parts = {
            name: self._write(batch.read(name, -(-size // _FILE_BYTES)), name, batch, attempt)
            for name, size in batch.sizes.items()
            if size
        }
        if parts:
            check_not_taken_over(batch.session, self._path, self._owner)
            commit = Commit(self._owner.generation, batch.number, batch.rows, parts)
            if not put_text(batch.session, f"{self._path}/{commit.folder}", commit.text):
                rule = (
                    f"another process has just written micro-batch {batch.number} of the same query"
                )
                raise OutputError(rule, value=self._path)

    def _is_committed(self, batch: SinkBatch) -> bool:
        """Return whether a run before this one came as far as to complete the micro-batch."""
        session = batch.session
        if not self._is_first:
            check_not_taken_over(session, self._path, self._owner)
            return False
        self._is_first = False
        check_owns(session, self._path, self._owner)
        found = known_commit(session, self._path, self._owner, batch.number)
        if found is not None and found.rows != batch.rows:
            rule = (
                f"micro-batch {batch.number} is there already and took {found.rows} rows, not "
                f"{batch.rows}: "
                "what comes before gw.stream has changed (then run the query once as it was), or "
                "the checkpoint is another one (then write to another path)"
            )
            raise OutputError(rule, value=self._path)
        return found is not None

    def _write(self, frame: DataFrame, name: str, batch: SinkBatch, attempt: str) -> Part:
        folder = part_folder(name, self._owner.generation, batch.number, attempt)
        noted = Observation()
        counted = frame.observe(noted, F.count(F.lit(1)).alias("rows"))
        counted.write.mode("error").parquet(f"{self._path}/{folder}")
        return Part(folder, noted.get["rows"])
