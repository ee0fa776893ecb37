"""Writes results of a batch query in the tasks that compute them, and commits them at the end."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import StructType

from gpu_windows.commits.bounded_write import BoundedWrite
from gpu_windows.commits.parquet_files import ParquetEncoding, count_written, write_parquet_file
from gpu_windows.commits.write_target import WriteTarget, WrittenFile, WrittenParquet
from gpu_windows.errors import GpuWindowsError, OutputError
from gpu_windows.operators.counters import Counters
from gpu_windows.planning.kinds.select import SelectQuery
from gpu_windows.planning.own_columns import NO_KEY, SPREAD
from gpu_windows.planning.plan import Plan, is_plan_of
from gpu_windows.runners.arrow_selection import apply_selections
from gpu_windows.runners.selection import Arrangement, Selection
from gpu_windows.spark_glue.batch.job import BatchRows, run_shards
from gpu_windows.spark_glue.batch.spark_results import is_finished_in_spark
from gpu_windows.spark_glue.columns.expressions import is_of_spark
from gpu_windows.spark_glue.columns.projections import public_rows
from gpu_windows.spark_glue.columns.types import to_spark_schema
from gpu_windows.spark_glue.dataframes.arrow_expressions import why_not_alike
from gpu_windows.spark_glue.files.local_parquet import LocalParquet
from gpu_windows.spark_glue.files.part_files import write_folder
from gpu_windows.spark_glue.session.settings import hadoop_setting
from gpu_windows.spark_glue.tasks.device import task_number
from gpu_windows.spark_glue.tasks.workers import TAG_FIELDS, RunShards, tag_values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: A task's row: the file that it has written, if it had results, and counters.
_FILES = pa.schema(
    [("name", pa.string()), ("rows", pa.int64()), ("bytes", pa.int64()), *TAG_FIELDS]
)
#: The error of a task, within the message of Spark's error.
_OF_TASK = re.compile(r"gpu_windows\.errors\.OutputError: (.*)")


@dataclass(frozen=True)
class PublicResults:
    """Converts results of an operator to those that users see.

    Parameters
    ----------
    plan : Plan
    selections : tuple of Selection
        Of the results.
    schema : pyarrow.Schema
        Of the converted results.
    """

    plan: Plan
    selections: tuple[Selection, ...]
    schema: pa.Schema

    def __call__(self, rows: pa.Table) -> pa.Table:
        """Return the rows that users see."""
        return self.select(rows).cast(self.schema)

    def select(self, rows: pa.Table) -> pa.Table:
        """Return the selected rows in the types that Arrow computes."""
        query = self.plan.query
        planned = rows.cast(self.plan.result_schema)
        rows = public_rows(planned, query.display_names, query.window_types, (NO_KEY, SPREAD))
        return apply_selections(rows, self.selections)


@dataclass(frozen=True)
class WriteResults:
    """Last step: evaluates a partition's shards and writes their results to a file.

    Parameters
    ----------
    run : RunShards
    write : BoundedWrite
    results : PublicResults
    encoding : ParquetEncoding
    """

    run: RunShards
    write: BoundedWrite
    results: PublicResults
    encoding: ParquetEncoding

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run in a Spark task; yield one row with the file and the counters."""
        self.write.check_reached()
        run = self.run.start()
        tables = map(self.results, run.results(batches))
        schema = self.results.schema
        file = write_parquet_file(self.write.part, task_number(), tables, schema, self.encoding)
        name, rows, size = (None, 0, 0) if file is None else (file.name, file.rows, file.bytes)
        columns = [[name], [rows], [size], *tag_values(run.counters)]
        yield pa.record_batch(columns, schema=_FILES)


@dataclass(frozen=True)
class ResultWriter:
    """Writes the results of a batch query.

    Parameters
    ----------
    rows : BatchRows
    results : PublicResults
    schema : pyspark.sql.types.StructType
        Spark's of the results.
    """

    rows: BatchRows
    results: PublicResults
    schema: StructType

    @property
    def _session(self) -> SparkSession:
        return self.rows.frame.sparkSession

    def why_by_spark(self, compression: str | None = None) -> str | None:
        """Return why Spark must write the results; None if the tasks that compute them do."""
        plan = self.results.plan
        if is_finished_in_spark(plan) or is_plan_of(plan, SelectQuery):
            return "it computes the results"
        if plan.query.ranking is not None:
            return "the first results of a window are found after another shuffle"
        if any(isinstance(each, Arrangement) for each in self.results.selections):
            return "distinct, sorted and limited results depend on those of all tasks"
        if (reason := self._why_selected_by_spark()) is not None:
            return reason
        local = LocalParquet.of_session(self._session, compression)
        if local is None:
            return "the session's settings of Parquet files ask for what only Spark writes"
        if not local.takes(self.schema):
            return "it notes more in a file of a column than Arrow does"
        return None

    def _why_selected_by_spark(self) -> str | None:
        results = self.results
        given = results.selections
        texts = [text for each in given for text in each.expressions.values()]
        texts += [each.where for each in given if each.where is not None]
        nothing = results.plan.result_schema.empty_table()
        if not texts:
            return None
        try:
            before = replace(results, selections=())
            reason = why_not_alike(self._session, texts, before.select(nothing).schema)
            types = results.select(nothing).schema.types
        except GpuWindowsError as error:
            return f"an expression of a selection is not one that Arrow computes, {error.value}"
        if reason is None and types != results.schema.types:
            return "it computes another type of an expression than Arrow does"
        return reason

    def write(self, frame: DataFrame, target: WriteTarget) -> WrittenParquet:
        """Write the results.

        Parameters
        ----------
        frame : pyspark.sql.DataFrame
            The same results, where Spark writes them.
        target : WriteTarget

        Raises
        ------
        OutputError
        """
        files = target.open(hadoop_setting(self._session.conf))
        local = LocalParquet.of_session(self._session, target.compression)
        by_spark = self.why_by_spark(target.compression) is not None
        write = BoundedWrite.begin(files, self.schema.json(), target.mode)
        counters: Counters | None = None
        with write.delete_on_error():
            if by_spark or local is None:
                written = _write_by_spark(frame, write, target.compression)
            else:
                written, counters = self._write_by_tasks(write, local.encoding(self.schema))
            paths = write.commit(written)
        by = "spark" if counters is None else "tasks"
        return WrittenParquet.of(files.root, paths, written, by, counters)

    def _write_by_tasks(
        self, write: BoundedWrite, encoding: ParquetEncoding
    ) -> tuple[list[WrittenFile], Counters]:
        """Return the files of successful attempts, and the sum of their counters."""

        def last_step(run: RunShards) -> WriteResults:
            return WriteResults(run, write, self.results, encoding)

        reports = run_shards(self.rows, self.results.plan, to_spark_schema(_FILES), last_step)
        with _task_errors_as_output_errors():
            found = reports.collect()
        written = [WrittenFile(name, rows, size) for name, rows, size, *_ in found if name]
        return written, sum((_counters(*tags) for _, _, _, *tags in found), Counters())


def _counters(counts: list[int], names: list[str], user: list[int]) -> Counters:
    own = dict(zip(Counters.names(), counts, strict=True))
    return Counters(**own, user=tuple(zip(names, user, strict=True)))


def _write_by_spark(
    frame: DataFrame, write: BoundedWrite, compression: str | None
) -> list[WrittenFile]:
    """Let Spark write the folder of this write."""
    write_folder(frame, write.part.spark_url, compression)
    written = count_written(write.part)
    if not written:
        rule = "the driver does not find the files that Spark wrote: choose a path that both reach"
        raise OutputError(rule, value=write.part.root)
    return written


@contextmanager
def _task_errors_as_output_errors() -> Iterator[None]:
    """Raise the `OutputError` of a task instead of Spark's error about it."""
    try:
        yield
    except Exception as error:
        found = _OF_TASK.search(str(error)) if is_of_spark(error) else None
        if found is None:
            raise
        raise OutputError(found[1].strip()) from error
