"""The job of a micro-batch: rows packed, shuffled by shard, and run through operators."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
from pyspark.sql.types import StructType

from gpu_windows.checkpointing.commit_log import CommitLog
from gpu_windows.checkpointing.staged_file import write_staged_file
from gpu_windows.checkpointing.state_commit import StagedFile, StateCommit
from gpu_windows.errors import StateCorruptedError
from gpu_windows.planning.plan import Plan
from gpu_windows.spark_glue.micro_batches.packing_task import PackMicroBatch
from gpu_windows.spark_glue.micro_batches.records import (
    REPORT,
    SCHEMA,
    ShardReport,
    from_json,
    to_json,
)
from gpu_windows.spark_glue.micro_batches.shard_task import CONTROL, RunMicroBatch
from gpu_windows.spark_glue.packing import PACKED, SHARD
from gpu_windows.spark_glue.times import Times
from gpu_windows.spark_glue.types import to_spark_schema
from gpu_windows.spark_glue.workers import PackRows
from gpu_windows.watermarks import InputProgress, Valve

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class MicroBatchJob:
    """Runs micro-batches of one query; it goes where Spark runs ``foreachBatch``.

    Parameters
    ----------
    plan : Plan
    log : CommitLog
    packing : PackRows
        With what shards are called in the shuffle.
    partitions : int
        Of the shuffle.
    gpu_share : float
        How much of a GPU is a task's.
    """

    plan: Plan
    log: CommitLog
    packing: PackRows
    partitions: int
    gpu_share: float = 1.0

    def run(
        self, rows: DataFrame, last: StateCommit, number: int, digest: str, planned_ms: int
    ) -> StateCommit:
        """Run a micro-batch; return the commit that it is to make, whose files are written.

        Parameters
        ----------
        rows : DataFrame
            The columns that the plan needs.
        last : StateCommit
            The last one.
        number, digest, planned_ms
            See `StateCommit`.
        """
        before = self.watermark(last)
        sequence = last.sequence + 1
        pack = PackMicroBatch(self.plan, self.packing, before.watermark, self.gpu_share)
        run = RunMicroBatch(
            plan=self.plan,
            log=self.log,
            sequence=sequence,
            ids=self._ids,
            newest=tuple(each.newest for each in last.shards),
            before=before,
            now_ms=planned_ms,
            gpu_share=self.gpu_share,
        )
        packed = rows.mapInArrow(pack, to_spark_schema(PACKED, StructType()))
        together = packed.union(self._control(rows)).repartition(self.partitions, SHARD)
        shards = together.sortWithinPartitions(SHARD)  # so that a task holds the rows of one
        given = shards.mapInArrow(run, to_spark_schema(SCHEMA, StructType())).toArrow()
        reports, inline = _split(given)
        if sorted(reports) != list(range(len(self._ids))):
            rule = "every shard reports in every micro-batch"
            raise StateCorruptedError(rule, value=f"reports of {sorted(reports)}")
        staged = [each.staged for _, each in sorted(reports.items()) if each.staged is not None]
        if inline:
            name = self.log.results_file(sequence, uuid4().hex)
            sizes = write_staged_file(self.log.files, name, inline)
            staged.append(StagedFile(name, tuple(sizes.items())))
        return StateCommit(
            sequence=sequence,
            lineage=last.lineage,
            facts=last.facts,
            number=number,
            digest=digest,
            planned_ms=planned_ms,
            shards=tuple(reports[shard].state for shard in sorted(reports)),
            watermarks=to_json(reports[0].watermark),
            results=tuple(staged),
            rows=sum(each.measured["rows"] for each in reports.values()),
            next_call_ms=self._next_call(reports.values(), planned_ms),
            parent=last.identity,
        )

    def watermark(self, commit: StateCommit) -> Valve:
        """Return how far the inputs were after a commit."""
        if commit.watermarks:
            return from_json(commit.watermarks)
        return Valve((InputProgress(),) * len(self.plan.query.watermarks.inputs))

    def _next_call(self, reports: Collection[ShardReport], now_ms: int) -> int | None:
        """Return when something is due by the clock, after now; None if nothing is."""
        times, watermarks = Times(self.plan.query), self.plan.query.watermarks
        if not times.in_processing_time:
            return None
        events, processing = zip(*(each.next_times for each in reports), strict=True)
        event = min((each for each in events if each is not None), default=None)
        calls = times.due_by_clock(min((p for p in processing if p is not None), default=None))
        valve = next(iter(reports)).watermark
        look = valve.next_look(now_ms, watermarks.timeouts)
        calls += [] if look is None else [look]
        if event is not None and watermarks.in_processing_time:
            calls.append(times.clock.first_time(event + 1))
        elif event is not None and valve.idle_since is not None and watermarks.all_close:
            calls.append(valve.idle_since + times.clock.first_time(event - valve.watermark))
        return max(min(calls), now_ms + 1) if calls else None

    @property
    def _ids(self) -> tuple[int, ...]:
        assert self.packing.ids is not None, "shards have names in a shuffle"
        return self.packing.ids

    def _control(self, rows: DataFrame) -> DataFrame:
        """Return a row for each shard, so that each is called."""
        table = pa.table([list(self._ids), [CONTROL] * len(self._ids)], schema=PACKED)
        return rows.sparkSession.createDataFrame(table, to_spark_schema(PACKED, StructType()))


def _split(given: pa.Table) -> tuple[dict[int, ShardReport], list[tuple[int, bytes]]]:
    """Return the reports of shards, by shard, and the results that came with them."""
    reports: dict[int, ShardReport] = {}
    inline: list[tuple[int, bytes]] = []
    columns = [given[name].to_pylist() for name in SCHEMA.names]
    for shard, kind, blob in zip(*columns, strict=True):
        if kind == REPORT:
            reports[shard] = ShardReport.from_bytes(blob)
        else:
            inline.append((kind, blob))
    return reports, inline
