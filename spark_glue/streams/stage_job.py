"""The job of a stage in a micro-batch: rows packed, shuffled by shard, and run by operators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

from gpu_windows.checkpointing.commit_log import CommitLog
from gpu_windows.checkpointing.staged_file import write_staged_file
from gpu_windows.checkpointing.state_commit import StagedFile, StageState
from gpu_windows.errors import StateCorruptedError
from gpu_windows.monitoring.progress import BatchMetrics, HeldWatermark, instant
from gpu_windows.operators.counters import Counters
from gpu_windows.planning.plan import Plan
from gpu_windows.rules import LONG_MIN
from gpu_windows.spark_glue.columns.types import to_spark_schema
from gpu_windows.spark_glue.contract.progress import (
    next_call_ms,
    read_combined_watermark,
    to_json,
    watermark_after,
)
from gpu_windows.spark_glue.contract.records import REPORT, SCHEMA, ShardReport
from gpu_windows.spark_glue.dataframes.stage_rows import Frames
from gpu_windows.spark_glue.scans.stream_scan import StreamScan
from gpu_windows.spark_glue.streams.result_reader import ResultReader
from gpu_windows.spark_glue.tasks.fragments import NUMBER, PACKED, SHARD, send_whole
from gpu_windows.spark_glue.tasks.given_keys import plan_of_micro_batch
from gpu_windows.spark_glue.tasks.micro_batch import CONTROL, PackMicroBatch, RunMicroBatch
from gpu_windows.spark_glue.tasks.worker_step import Step, map_in_workers
from gpu_windows.spark_glue.tasks.workers import PackRows
from gpu_windows.vocabulary.watermarks import CombinedWatermark, StageWatermarks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, kw_only=True)
class MicroBatchTimes:
    """Number and time of a micro-batch.

    Parameters
    ----------
    sequence : int
        Of the commit that it is to make.
    number : int
        Spark's number of it.
    now_ms : int
        When Spark planned it, in milliseconds since 1970.
    """

    sequence: int
    number: int
    now_ms: int


@dataclass(frozen=True)
class FinishedStage:
    """A finished stage of a micro-batch: its files are written, and no commit names them yet.

    Parameters
    ----------
    state : StageState
    staged_files : tuple of StagedFile
        Its results.
    metrics : BatchMetrics
    next_call_ms : int, optional
        When the clock makes something due, in milliseconds since 1970; None: nothing is due.
    """

    state: StageState
    staged_files: tuple[StagedFile, ...]
    metrics: BatchMetrics
    next_call_ms: int | None


@dataclass(frozen=True, kw_only=True)
class StageJob:
    """Runs a stage of a query; pickled to the process that runs ``foreachBatch``.

    Parameters
    ----------
    name : str
        Of the stage; empty of the last one.
    number : int
    reader : ResultReader
        Of its results; it has the plan.
    make_rows : callable
        See `gpu_windows.spark_glue.dataframes.stage_rows.StageRows.of_stream`.
    log : CommitLog
    packing : PackRows
        With the ids of shards in the shuffle.
    partitions : int
        Of the shuffle.
    gpu_share : float
        How much of a GPU is a task's.
    scan : StreamScan, optional
        Reads the files that rows are the paths of.
    is_read : bool
        Whether another stage reads its results.
    """

    name: str
    number: int
    reader: ResultReader
    make_rows: Callable[[Frames], DataFrame]
    log: CommitLog
    packing: PackRows
    partitions: int
    gpu_share: float = 1.0
    scan: StreamScan | None = None
    is_read: bool = False
    _controls: list[DataFrame] = field(default_factory=list, init=False, compare=False, repr=False)

    @property
    def plan(self) -> Plan:
        """The plan of the stage."""
        return self.reader.plan

    def run(
        self,
        rows: DataFrame,
        before: StageState,
        stage_watermarks: Mapping[str, int | None],
        times: MicroBatchTimes,
    ) -> FinishedStage:
        """Run the stage in a micro-batch.

        Parameters
        ----------
        rows : DataFrame
            The columns that the plan needs; or paths of files, where there is a scan.
        before : StageState
            Of the last commit.
        stage_watermarks : mapping of str to (int or None)
            Names of the stages that have run in this micro-batch to their watermarks.
        times : MicroBatchTimes
        """
        combined = read_combined_watermark(self.plan.query, before.watermarks)
        under = LONG_MIN if before.watermark is None else before.watermark
        pack = PackMicroBatch(self.packing, under, self.gpu_share)
        packed = self._map(rows, pack, PACKED, times)
        shards = packed.union(self._control(rows)).repartition(self.partitions, SHARD)
        if len(self._ids) > self.partitions:  # a task processes one shard after another
            shards = shards.sortWithinPartitions(SHARD, NUMBER)
        run = self._shard_task(before, combined, stage_watermarks, times)
        output = map_in_workers(shards, run, to_spark_schema(SCHEMA)).toArrow()
        reports, staged_files = self._shard_reports(output, times)
        return self._finish(reports, staged_files, before, times)

    def _map(
        self, rows: DataFrame, step: Step, schema: pa.Schema, times: MicroBatchTimes
    ) -> DataFrame:
        """Return the output of a step over the rows, or over those of the files that they name."""
        query, output = self.plan.query, to_spark_schema(schema)
        if self.scan is not None:
            return self.scan.map(rows, self.plan, step, output)
        if query.watermarks.in_processing_time:  # Spark's clock may be set back
            now = F.lit(times.now_ms * 1_000).cast("long")
            rows = rows.withColumn(query.time, F.greatest(F.col(query.time), now))
        return map_in_workers(rows, step, output)

    def _shard_task(
        self,
        before: StageState,
        combined: CombinedWatermark,
        stage_watermarks: Mapping[str, int | None],
        times: MicroBatchTimes,
    ) -> RunMicroBatch:
        newest = tuple(each.newest for each in before.shards)
        return RunMicroBatch(
            plan=plan_of_micro_batch(self.plan, newest),
            log=self.log,
            sequence=times.sequence,
            stage=self.number,
            first_kind=self.reader.first,
            ids=self._ids,
            newest=newest,
            before=combined,
            previous_watermark=before.watermark,
            stage_watermarks=dict(self._stage_watermarks(stage_watermarks)),
            now_ms=times.now_ms,
            gpu_share=self.gpu_share,
        )

    def _stage_watermarks(
        self, stage_watermarks: Mapping[str, int | None]
    ) -> Iterator[tuple[int, int]]:
        """Yield the inputs that are results of a stage, and their watermarks."""
        for number, each in enumerate(self.plan.query.watermarks.inputs):
            if isinstance(each, StageWatermarks):
                watermark = stage_watermarks[each.stage]
                if watermark is not None:
                    yield number, max(watermark - each.behind, LONG_MIN)

    def _shard_reports(
        self, output: pa.Table, times: MicroBatchTimes
    ) -> tuple[list[ShardReport], list[StagedFile]]:
        """Return the reports of all shards, in their order, and the files of their results."""
        rows, inline = split_reports(output)
        reports = {shard: ShardReport.from_bytes(blob) for shard, blob in rows}
        if sorted(reports) != list(range(len(self._ids))):
            rule = "every shard reports in every micro-batch"
            raise StateCorruptedError(rule, value=f"reports of {sorted(reports)}")
        in_order = [reports[shard] for shard in sorted(reports)]
        return in_order, self._staged_files([e.staged_file for e in in_order], inline, times)

    def _staged_files(
        self,
        files: Iterable[StagedFile | None],
        inline: list[tuple[int, bytes]],
        times: MicroBatchTimes,
    ) -> list[StagedFile]:
        """Return the files of results, with one for those that came with the reports."""
        staged_files = [each for each in files if each is not None]
        if inline:
            name = self.log.results_file(times.sequence, uuid4().hex)
            sizes = write_staged_file(self.log.files, name, inline)
            staged_files.append(StagedFile(name, tuple(sizes.items())))
        return staged_files

    def _finish(
        self,
        in_order: Sequence[ShardReport],
        staged_files: Sequence[StagedFile],
        before: StageState,
        times: MicroBatchTimes,
    ) -> FinishedStage:
        query, combined = self.plan.query, in_order[0].combined
        watermark = watermark_after(query, combined, before.watermark, times.now_ms)
        shards = tuple(each.state for each in in_order)
        return FinishedStage(
            state=StageState(self.name, shards, to_json(combined), watermark),
            staged_files=tuple(staged_files),
            metrics=self._metrics(in_order, watermark, times),
            next_call_ms=next_call_ms(
                query, combined, [each.next_times for each in in_order], times.now_ms
            ),
        )

    def _metrics(
        self, reports: Sequence[ShardReport], watermark: int | None, times: MicroBatchTimes
    ) -> BatchMetrics:
        combined, timeouts = reports[0].combined, self.plan.query.watermarks.timeouts
        counters = reduce(add, (each.counters for each in reports))
        measures = [each.measures for each in reports]
        may_wait = len(combined.inputs) > 1 or any(each is not None for each in timeouts)
        return BatchMetrics(
            number=times.number,
            seconds=0.0,
            watermark=None if watermark is None else instant(watermark),
            counters=counters,
            shards=len(reports),
            kernel_ms=sum(each.kernel_ms for each in measures),
            state_ms=sum(each.state_ms for each in measures),
            state_rows=sum(each.state_rows for each in measures),
            state_bytes=sum(each.state_bytes for each in measures),
            device=_device(counters),
            held=HeldWatermark.of(combined) if may_wait else None,
        )

    @property
    def _ids(self) -> tuple[int, ...]:
        assert self.packing.ids is not None, "shards have ids in a shuffle"
        return self.packing.ids

    def _control(self, rows: DataFrame) -> DataFrame:
        """Return a row for each shard, so that every shard runs.

        All micro-batches share this DataFrame, because making it takes 20 ms.
        """
        if not self._controls:
            table = pa.Table.from_batches([send_whole(self._ids, CONTROL)])
            frame = rows.sparkSession.createDataFrame(table, to_spark_schema(PACKED))
            self._controls.append(frame.coalesce(1))  # a task, not one a core
        return self._controls[0]


def split_reports(output: pa.Table) -> tuple[list[tuple[int, bytes]], list[tuple[int, bytes]]]:
    """Return the reports among the rows of `records.SCHEMA`, by task, and results, by kind."""
    reports: list[tuple[int, bytes]] = []
    inline: list[tuple[int, bytes]] = []
    columns = [output[name].to_pylist() for name in SCHEMA.names]
    for shard, kind, blob in zip(*columns, strict=True):
        if kind == REPORT:
            reports.append((shard, blob))
        else:
            inline.append((kind, blob))
    return reports, inline


def _device(counters: Counters) -> str:
    """Return where kernels ran: ``cpu``, ``cuda``, ``cpu+cuda``; empty if none ran."""
    ran = (("cpu", counters.cpu_batches), ("cuda", counters.cuda_batches))
    return "+".join(name for name, calls in ran if calls)
