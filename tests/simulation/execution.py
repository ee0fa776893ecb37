"""Runs a case in micro-batches and shards, whose state is what was committed.

All that a shard does is `gpu_windows.spark_glue.tasks.shard_run`, as in tasks of Spark.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace

import pyarrow as pa
import pytest

from gpu_windows.errors import GpuWindowsError
from gpu_windows.operators.joins import pairs as join_pairs
from gpu_windows.operators.joins import rows as join_rows
from gpu_windows.operators.slices.preaggregation import OnTimePreaggregation
from gpu_windows.operators.state import (
    keyed_table,
    log,
    manifest,
    merge_input,
    row_buffer,
    runs,
    state_file_writer,
)
from gpu_windows.operators.state.log import StateLog
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.plan import Plan, is_plan_of
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.spark_glue.tasks.packing import assign_shards
from tests.simulation.case import Case, Crash, MicroBatch, Segment
from tests.simulation.fuses import CrashedError, Fuse
from tests.simulation.outcome import Given, Outcome
from tests.simulation.stage import Attempt, MakeLog, Stage, Times, state_folder

#: Tables in which the rows of a shard come: as many blobs.
_BLOB_ROWS = 5
#: Rows that a task before the shuffle has.
_TASK_ROWS = 12
#: What is held together at most, where that is little.
_TIGHT = (
    (keyed_table, "_BLOCK_BYTES", 1),
    (keyed_table, "_MERGED_BYTES", 1),
    (row_buffer, "_BLOCK_BYTES", 1),
    (row_buffer, "_DUE_BLOCKS", 1),
    (merge_input, "_PART_BYTES", 1),
    (runs, "_MIN_FILTERED", 2),
    (log, "_SMALL_RUN", 1),
    (manifest, "_TAIL", 24),
    (state_file_writer, "MERGE_FANIN", 2),
    (join_rows, "_MAX_ROWS", 1),
    (join_pairs, "PAIRS", 3),
)


class Execution:
    """A case as it is executed.

    Parameters
    ----------
    case : Case
    make_log : callable
        Makes the store of a shard in a micro-batch.
    """

    def __init__(self, case: Case, make_log: MakeLog = StateLog) -> None:
        self._case = case
        self._plan = case.executed
        self._make_log = make_log
        self.calls = self.crashes = self.starts = 0

    def run(self) -> Outcome:
        """Run all micro-batches, then the end of time."""
        with pytest.MonkeyPatch.context() as patch, state_folder() as folder:
            for module, name, most in _TIGHT if self._case.is_tight else ():
                patch.setattr(module, name, most)
            self._stage = Stage(self._plan, folder, make_log=self._make_log)
            return self._run()

    def _run(self) -> Outcome:
        found: list[Given] = []
        any_order = not self._plan.query.order_dependent(bounded=False)
        try:
            for segment in self._case.segments():
                found.append(Given())
                for batch in segment.micro_batches(any_order=any_order):
                    found[-1] += self._committed(segment, batch)
        except GpuWindowsError as error:
            return Outcome(found, {}, error)
        return Outcome(found, self._stage.state_size)

    def _committed(self, segment: Segment, batch: MicroBatch) -> Given:
        """Run a micro-batch until it does not die."""
        rows, times = self._by_shard(segment, batch), Times(segment.now, batch.watermark)
        for crash in batch.crashes:
            self._die(rows, times, crash)
            if self._case.shard_counts:
                self._start_again()
                rows = self._by_shard(segment, batch)
        made = self._attempt(rows, times, Fuse())
        self._stage.commit(made.shards)
        self.calls += len(made.shards)
        given = Given()
        given.add(made.emissions)
        return given

    def _start_again(self) -> None:
        """Go on with another number of shards."""
        counts = self._case.shard_counts
        options = replace(self._plan.query.options, shards=counts[self.starts % len(counts)])
        self._plan = replace(self._plan, query=replace(self._plan.query, options=options))
        self._stage.plan = self._plan
        self.starts += 1

    def _die(self, rows: dict[int, list[pa.Table]], times: Times, crash: Crash) -> None:
        """Run a micro-batch that dies, at the latest before it is committed."""
        self.crashes += 1
        try:
            self._attempt(rows, times, Fuse(crash.after))
        except CrashedError:
            return

    def _attempt(self, rows: dict[int, list[pa.Table]], times: Times, fuse: Fuse) -> Attempt:
        return self._stage.attempt(rows, times, fuse)

    def _by_shard(self, segment: Segment, batch: MicroBatch) -> dict[int, list[pa.Table]]:
        """Return the rows of every shard, in the order in which a shuffle brings them."""
        if not batch.rows:
            return {}
        table = self._case.table(batch.rows, self._plan, segment.now)
        return by_shard(self._plan, self._sent(table, segment))

    def _sent(self, rows: pa.Table, segment: Segment) -> Iterator[pa.Table]:
        """Yield what tasks make of rows before a shuffle."""
        plan, ahead = self._plan, self._case.ahead
        if ahead is None or not plan.makes_partials:
            yield rows
            return
        assert is_plan_of(plan, WindowQuery)
        known = segment.before
        latest = LONG_MIN if known is None else min(known + ahead, LONG_MAX)
        for at in range(0, len(rows), _TASK_ROWS):
            stage = OnTimePreaggregation(plan, latest, max_share=math.inf)
            yield from stage.run(rows.slice(at, _TASK_ROWS).to_batches())


def by_shard(plan: Plan, tables: Iterable[pa.Table]) -> dict[int, list[pa.Table]]:
    """Return the rows of every shard, in a few blobs."""
    found: dict[int, list[pa.Table]] = {}
    for table in tables:
        rows, shards = assign_shards(plan, table)
        for shard in sorted(set(shards.tolist())):
            own = rows.filter(pa.array(shards == shard))
            blobs = (own.slice(at, _BLOB_ROWS) for at in range(0, len(own), _BLOB_ROWS))
            found.setdefault(shard, []).extend(blobs)
    return found
