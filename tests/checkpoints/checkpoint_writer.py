"""Checkpoints of queries, written as a driver and its tasks write them, without Spark."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from uuid import uuid4

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import gpu_windows as gw
from gpu_windows.checkpointing.commit_log import CommitLog
from gpu_windows.checkpointing.files import FOLDER
from gpu_windows.checkpointing.local_files import LocalFiles
from gpu_windows.checkpointing.state_commit import ShardState, StageState, StateCommit
from gpu_windows.operators.state.log import StateLog
from gpu_windows.planning.plan import Plan
from gpu_windows.planning.planner import plan
from gpu_windows.spark_glue.contract.manifest import Manifest
from gpu_windows.spark_glue.tasks.shard_run import ShardRun
from gpu_windows.vocabulary.watermarks import CombinedWatermark, InputProgress

#: Of a query that does not say how many it has.
SHARDS = 2


def plan_stream(outputs: gw.typing.Outputs) -> Plan:
    """Return the plan of a query on a stream, given the same query on a table."""
    return plan(outputs.plan.query, bounded=False, spark=True)


def to_rows(made: Plan, table: pa.Table) -> pa.Table:
    """Return rows as packing tasks send them: times are ticks."""
    ticks = table["ts"].cast(pa.int64())
    names = dict.fromkeys((*made.input_columns, *made.order))
    return table.set_column(table.schema.get_field_index("ts"), "ts", ticks).select([*names])


class CheckpointWriter:
    """The checkpoint of a query that was started; `micro_batch` adds to it.

    Parameters
    ----------
    folder : Path
    own : Plan
        Of the query's own stage, the last one.
    **earlier : Plan
        Of the stages before it, by name.
    """

    def __init__(self, folder: Path, own: Plan, **earlier: Plan) -> None:
        self.path = str(folder)
        self.plans = {**earlier, "": own}
        self.log = CommitLog(LocalFiles(str(folder / FOLDER)))
        stages = tuple(
            StageState(name, (ShardState(),) * (made.query.options.shards or SHARDS))
            for name, made in self.plans.items()
        )
        self.last = StateCommit(sequence=0, lineage="a", facts=self._facts(), stages=stages)
        self.log.add(self.last)

    def micro_batch(
        self, *tables: pa.Table, watermark: int | None, stage: str = "", due_ms: int | None = None
    ) -> None:
        """Run a micro-batch of one stage, with rows as `to_rows` returns them, and commit it.

        Parameters
        ----------
        *tables : pyarrow.Table
        watermark : int, optional
            After the rows, in ticks.
        stage : str
        due_ms : int, optional
            When something is due by the clock.
        """
        made = self.plans[stage]
        before = next(each for each in self.last.stages if each.name == stage)

        def run(shard: int, log: StateLog, name: str) -> None:
            count = len(before.shards)
            own = [table.filter(pa.array(_shards_of(table, count) == shard)) for table in tables]
            step = ShardRun(made, log, now=0)
            for _ in step.emissions(own, lambda: watermark):
                pass
            step.finish(name)

        combined = CombinedWatermark(
            (), CombinedWatermark(()).watermark if watermark is None else watermark
        )
        if watermark is not None:
            combined = replace(combined, inputs=(InputProgress(watermark),))
        after = replace(before, watermarks=asdict(combined), watermark=watermark)
        self._commit(after, run, due_ms)

    def write_state(self, shard: int, write: Callable[[StateLog], None]) -> None:
        """Commit a micro-batch that has written into a shard of the query's own stage."""

        def run(number: int, log: StateLog, name: str) -> None:
            if number == shard:
                write(log)
                log.finish(name)

        self._commit(self.last.stages[-1], run, None)

    def _commit(
        self, before: StageState, run: Callable[[int, StateLog, str], None], due_ms: int | None
    ) -> None:
        sequence, number = self.last.sequence + 1, [*self.plans].index(before.name)
        shards = []
        for shard, state in enumerate(before.shards):
            log = StateLog(self.log.files, state.newest)
            run(shard, log, self.log.state_file(sequence, number, shard, uuid4().hex))
            shards.append(ShardState(log.newest, log.live_files))
        after = replace(before, shards=tuple(shards))
        stages = tuple(after if each.name == before.name else each for each in self.last.stages)
        self.last = replace(
            self.last,
            sequence=sequence,
            number=self.last.number + 1,
            stages=stages,
            next_call_ms=due_ms,
            identity=uuid4().hex,
            parent=self.last.identity,
        )
        self.log.add(self.last)
        self.log.sweep(self.last)

    def _facts(self) -> str:
        manifest = Manifest.of(self.plans[""])
        described = dict(manifest.described)
        for name, made in self.plans.items():
            if name:
                of_stage = Manifest.of(made).described
                described |= {f"{name}: {part}": text for part, text in of_stage.items()}
        return replace(manifest, described=described).text


def _shards_of(table: pa.Table, count: int) -> NDArray[np.int64]:
    """Return the shard of each row: those of a key have one."""
    keys = table["k"].to_pylist()
    return np.array([zlib.crc32(repr(key).encode()) % count for key in keys], np.int64)
