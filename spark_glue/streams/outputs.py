"""Sources and outputs of queries on streaming DataFrames, checked before anything runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NoReturn

from pyspark.sql.types import StructField, StructType

from gpu_windows.commits.write_target import WriteTarget
from gpu_windows.errors import UnsupportedQueryError
from gpu_windows.planning.kinds.select import SelectQuery
from gpu_windows.planning.plan import is_plan_of
from gpu_windows.planning.planner import plan
from gpu_windows.planning.query import Query
from gpu_windows.runners.outputs import Outputs
from gpu_windows.runners.stages import Stage, check_distinct_stages
from gpu_windows.spark_glue.columns.projections import columns_of
from gpu_windows.spark_glue.contract.manifest import Manifest
from gpu_windows.spark_glue.contract.watermarks import progress_columns, with_progress
from gpu_windows.spark_glue.dataframes.source import SparkSource
from gpu_windows.spark_glue.dataframes.spark_selection import SparkOutputs
from gpu_windows.spark_glue.dataframes.stage_rows import StageRows
from gpu_windows.spark_glue.dataframes.stream_inputs import StreamInput, join_inputs, warn_of_alike
from gpu_windows.spark_glue.scans.batch_scan import check_folder
from gpu_windows.spark_glue.scans.stream_scan import (
    StreamScan,
    stream_reader,
    stream_scan,
    why_not_in_tasks,
)
from gpu_windows.spark_glue.session.settings import crosses_quickly, shuffle_partitions
from gpu_windows.spark_glue.session.worker_python import prepare_workers
from gpu_windows.spark_glue.streams.result_reader import ResultReader
from gpu_windows.spark_glue.streams.select_job import check_crosses
from gpu_windows.spark_glue.streams.stages import (
    QueryStage,
    check_stage,
    placeholder,
    with_stages,
)
from gpu_windows.vocabulary.options import MAX_SHARDS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class StreamOutputs(SparkOutputs):
    """Outputs of a query on a streaming DataFrame: `gpu_windows.write_stream` takes them.

    Parameters
    ----------
    source : SparkSource
        Its rows may be results of earlier stages.
    query : Query
    """

    is_streaming = True
    input_kind = "a streaming DataFrame"

    def __init__(self, source: StreamSource, query: Query) -> None:
        session = source.frame.sparkSession
        self.earlier = source.earlier
        if self.earlier:
            check_stage(query)
        self.adopted = source.adopt(query.time, query.watermarks)
        some = min(shuffle_partitions(session), MAX_SHARDS)
        shards = query.options.shards or (some if query.has_key and query.shard_keys else 1)
        options = replace(query.options, shards=shards)
        query = replace(query, options=options, display_names=source.public)
        quickly = crosses_quickly(session.conf)
        planned = plan(query, bounded=False, spark=True, crosses_quickly=quickly)
        if is_plan_of(planned, SelectQuery):
            check_crosses(planned.query)
        self.session = session
        self._source = source
        reasons = [*planned.reasons, *self.adopted.notes]
        scan = source.scan
        if scan is not None:
            if scan.rows is not None and (reason := why_not_in_tasks(query)) is not None:
                scan = scan.then(reason)
            reasons.append(scan.describe(planned, in_task=scan.rows is not None))
        self._scan = scan
        self.plan = replace(planned, reasons=tuple(reasons))

    def explain(self) -> str:
        """Return what is computed, stage by stage."""
        stages = [f"stage {each.name}\n{each.explained}" for each in self.earlier]
        return "\n\n".join([*stages, super().explain()])

    @property
    def stages_before(self) -> int:
        """Number of earlier stages."""
        return len(self.earlier)

    @cached_property
    def manifest(self) -> Manifest:
        """The manifest for the checkpoint, with all stages and inputs."""
        inputs = join_inputs(stage.inputs for stage in self.stages)
        warn_of_alike(inputs)
        whole = self._manifest.with_stages({each.name: each.manifest for each in self.earlier})
        return replace(whole, inputs=tuple(each.facts for each in inputs))

    @cached_property
    def _manifest(self) -> Manifest:
        source, more = self._source, {}
        if source.changes:
            more["rows"] = "; ".join(source.changes)
        if self.adopted.steps:
            more["steps before"] = "; ".join(self.adopted.steps)
        return Manifest.of(self.plan).with_facts(more)

    @property
    def reader(self) -> ResultReader:
        """The reader of staged results of all stages."""
        return with_stages(self._own_reader, self.earlier)

    @property
    def _own_reader(self) -> ResultReader:
        schema = self._source.frame.schema
        query = self.plan.query
        keys = StructType([schema[name] for name in query.keys])
        input_types = StructType(
            [StructField(name, schema[of].dataType) for name, of in query.passed_columns.items()]
        )
        return ResultReader(self.plan, keys, input_types, self.selections)

    @property
    def stages(self) -> tuple[QueryStage, ...]:
        """All stages, in order; the last one is the query's own."""
        own = QueryStage(
            name="",
            reader=self._own_reader,
            rows=self._rows,
            manifest=self._manifest,
            explained=super().explain(),
            inputs=self._source.inputs,
            steps_before=self.adopted.steps,
            scan=self._stream_scan,
        )
        return (*self.earlier, own)

    @property
    def _stream_scan(self) -> StreamScan | None:
        """The scan of files by tasks; None if Spark reads the rows."""
        scan = self._scan
        if scan is None or scan.rows is None or scan.arriving is None:
            return None
        return StreamScan(scan.rows, scan.arriving.roots)

    @property
    def _rows(self) -> StageRows:
        """The columns that tasks need; or the paths of files that tasks read."""
        plan, source = self.plan, self._source
        query = plan.query
        if self._stream_scan is not None and source.scan is not None and source.scan.arriving:
            return StageRows.of_stream(source.scan.arriving.frame)

        def prepare(frame: DataFrame) -> DataFrame:
            rows = with_progress(frame, query.time, query.watermarks, plan.marker_columns)
            return columns_of(rows, plan, progress_columns(query))

        if source.stage_rows is None:
            return StageRows.of_stream(prepare(source.frame))
        return source.stage_rows.then(prepare)

    def rows(self, stage: Stage) -> SparkSource:
        """Return the results as the rows of another stage of one query.

        Raises
        ------
        UnsupportedQueryError
            If the query cannot be followed by another stage.
        """
        check_stage(self.plan.query)
        check_distinct_stages((*(each.name for each in self.earlier), stage.name))
        own = replace(self.as_stage(stage.name), keeps_results=stage.keep, is_read=True)
        frame = own.reader.as_stage_rows(placeholder(self.session, own.reader))
        return StreamSource(
            frame, earlier=(*self.earlier, own), stage_rows=StageRows.of_stage(stage.name)
        )

    def as_stage(self, name: str) -> QueryStage:
        """Return the query's own stage as one before others."""
        own = self.stages[-1]
        selection = "; ".join(each.describe() for each in self.selections)
        manifest = own.manifest.with_facts({"selection": selection} if selection else {})
        return replace(own, name=name, manifest=manifest)

    def _analyzed_results(self) -> DataFrame:
        reader = self._own_reader
        return reader.as_results(placeholder(self.session, reader))

    def result(self) -> NoReturn:
        """Raise `UnsupportedQueryError`: results of streams are written by `write_stream`.

        The same holds for `late`, `rejected`, `side` and `metrics`.
        """
        raise _is_written("result")

    def late(self) -> NoReturn:
        """Raise `UnsupportedQueryError`: see `result`."""
        raise _is_written("late")

    def rejected(self) -> NoReturn:
        """Raise `UnsupportedQueryError`: see `result`."""
        raise _is_written("rejected")

    def _side(self, tag: str) -> NoReturn:
        raise _is_written(f"side({tag!r})")

    def _write_parquet(self, target: WriteTarget) -> NoReturn:
        raise _is_written(f"write_parquet({str(target.path)!r})")

    def metrics(self) -> NoReturn:
        """Raise `UnsupportedQueryError`: `gpu_windows.watch` and `MetricsListener` have them."""
        rule = (
            "metrics of a streaming query are shown by gpu_windows.watch(query) and collected by "
            "gpu_windows.MetricsListener"
        )
        raise UnsupportedQueryError(rule, value="metrics()")


def _is_written(output: str) -> UnsupportedQueryError:
    rule = (
        "a stream has no table of results: say .with_outputs() before the verb that ends it, and "
        "give what that returns to gpu_windows.write_stream(outputs, path, checkpoint), or to "
        "gpu_windows.stream_results(outputs) for windows over it"
    )
    return UnsupportedQueryError(rule, value=f"{output} of a stream")


@dataclass(frozen=True)
class StreamSource(SparkSource):
    """A streaming DataFrame as the source of a query."""

    is_streaming = True
    earlier: tuple[QueryStage, ...] = ()

    def check_arrival(self) -> None:
        """Do nothing: rows arrive over time."""

    def outputs(self, query: Query) -> Outputs:
        """Plan a query."""
        prepare_workers(self.frame.sparkSession)
        return StreamOutputs(self, query)


def scan_stream_by_spark(
    path: str, session: SparkSession, schema: StructType | str | None, max_files: int | None
) -> StreamSource:
    """Return files that arrive in a folder as a source.

    Parameters
    ----------
    path : str
    session : pyspark.sql.SparkSession
    schema : StructType or str, optional
        Of the files; default: of those already there.
    max_files : int, optional
        Of a micro-batch.
    """
    check_folder(path, session)
    wanted = session.read.parquet(path).schema if schema is None else schema
    frame = stream_reader(session, max_files).schema(wanted).parquet(path)
    scan = stream_scan(frame, path, session, max_files)
    return StreamSource(frame, inputs=(StreamInput(frame),), scan=scan)
