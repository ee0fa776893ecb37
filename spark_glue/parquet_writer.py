"""Writes micro-batches to a path, each in files of its own, and then says that it is complete."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from uuid import uuid4

from pyspark.sql import Observation
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

from gpu_windows.commits.records import LATE, RESULT, Commit, Owner, Part, part_folder
from gpu_windows.errors import OutputError
from gpu_windows.spark_glue.ownership import check_not_taken_over, check_owns, known_commit
from gpu_windows.spark_glue.reader import Reader
from gpu_windows.spark_glue.texts import put_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Bytes of blobs that make a file. More files let more cores write.
_FILE_BYTES = 1 << 24


class ParquetWriter:
    """Writes what a query gives to a path that it owns.

    Parameters
    ----------
    path : str
    owner : Owner
        The query.
    reader : Reader
    """

    def __init__(self, path: str, owner: Owner, reader: Reader) -> None:
        self._path = path
        self._owner = owner
        self._reader = reader
        self._is_first = True

    def write(self, tagged: DataFrame, number: int, rows: int, sizes: Mapping[str, int]) -> None:
        """Write a micro-batch, unless it was written before.

        Parameters
        ----------
        tagged : DataFrame
            The physical output; it must have been computed, for what is empty is not read.
        number : int
            Of the micro-batch.
        rows : int
            That it took in.
        sizes : dict of str to int
            Outputs to the bytes of their blobs.

        Raises
        ------
        OutputError
            If the path is another query's now, or the checkpoint an older copy.
        """
        session = tagged.sparkSession
        if self._is_committed(session, number, rows):
            return
        attempt = uuid4().hex[:8]
        frames = {RESULT: self._reader.results, LATE: self._reader.given_back}
        parts = {
            name: self._write(read(tagged, -(-sizes[name] // _FILE_BYTES)), name, number, attempt)
            for name, read in frames.items()
            if sizes[name]
        }
        if parts:
            check_not_taken_over(session, self._path, self._owner)
            commit = Commit(self._owner.generation, number, rows, parts)
            if not put_text(session, f"{self._path}/{commit.folder}", commit.text):
                rule = f"another process has just written micro-batch {number} of the same query"
                raise OutputError(rule, value=self._path)

    def _is_committed(self, session: SparkSession, number: int, rows: int) -> bool:
        """Return whether a run before this one came as far as to complete the micro-batch."""
        if not self._is_first:
            check_not_taken_over(session, self._path, self._owner)
            return False
        self._is_first = False
        check_owns(session, self._path, self._owner)
        found = known_commit(session, self._path, self._owner, number)
        if found is not None and found.rows != rows:
            rule = (
                f"micro-batch {number} is there already and took {found.rows} rows, not {rows}: "
                "what comes before gw.stream has changed (then run the query once as it was), or "
                "the checkpoint is another one (then write to another path)"
            )
            raise OutputError(rule, value=self._path)
        return found is not None

    def _write(self, frame: DataFrame, name: str, number: int, attempt: str) -> Part:
        folder = part_folder(name, self._owner.generation, number, attempt)
        noted = Observation()
        counted = frame.observe(noted, F.count(F.lit(1)).alias("rows"))
        counted.write.mode("error").parquet(f"{self._path}/{folder}")
        return Part(folder, noted.get["rows"])
