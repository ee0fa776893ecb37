"""What one shard reads from and writes to its state files in each micro-batch, without Spark."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from benchmarks.data import START
from benchmarks.shard_counts import CountingLog, Phase, Tally, Traffic
from gpu_windows.checkpointing.local_files import LocalFiles
from gpu_windows.planning.plan import Plan
from gpu_windows.rules import LONG_MAX
from gpu_windows.spark_glue.tasks.shard_run import ShardRun

#: Ticks that the watermark moves by in a micro-batch.
_STEP = 1_000


@dataclass(frozen=True)
class Cost:
    """What a micro-batch took.

    Parameters
    ----------
    cpu_s : float
        Processor seconds.
    traffic : Traffic
    results : int
        Rows that it gave.
    touched_keys, touched_bytes : int
        Keys that its rows are of, and the bytes of the entries that they touch.
    """

    cpu_s: float
    traffic: Traffic
    results: int
    touched_keys: int = 0
    touched_bytes: int = 0


class ShardWork:
    """A shard of a plan that is given micro-batches; nothing fires in time before the end.

    Parameters
    ----------
    plan : Plan
        Of a stream on Spark.
    folder : pathlib.Path
        For its state files.

    Attributes
    ----------
    live_bytes : int
        Bytes of all runs that are live.
    """

    def __init__(self, plan: Plan, folder: Path) -> None:
        self._plan, self._watermark = plan, START
        self._folder, self._files, self._tally = folder, LocalFiles(str(folder)), Tally()
        self._live_files: tuple[str, ...] = ()
        self._newest: str | None = None
        self._count = 0
        self.live_bytes = 0

    def micro_batch(self, table: pa.Table) -> Cost:
        """Give it rows; the watermark, at which no window has ended, moves by a millisecond."""
        self._watermark += _STEP
        return self._run([table], self._watermark)

    def end(self) -> Cost:
        """Let time end: everything fires that waits for event time."""
        return self._run([], LONG_MAX)

    @property
    def file_bytes(self) -> int:
        """Bytes of the files that hold them, with what has expired in these."""
        return sum((self._folder / name).stat().st_size for name in self._live_files)

    def _run(self, tables: Sequence[pa.Table], watermark: int) -> Cost:
        results = 0
        began = time.process_time()
        with self._in("restoring"):
            log = CountingLog(self._files, self._newest, self._tally)
            run = ShardRun(self._plan, log, now=START)
        with self._in("taking"):
            for emission in run.emissions(tables, lambda: watermark):
                results += len(emission.results)
        with self._in("saving"):
            self._count += 1
            run.finish(f"{self._count:06}")
            self._newest = log.newest
        cost = Cost(time.process_time() - began, self._tally.take(), results)
        for name in {*self._live_files} - {*log.live_files}:
            self._files.delete(name)
        self._live_files, self.live_bytes = log.live_files, log.live_size
        return cost

    @contextmanager
    def _in(self, phase: Phase) -> Iterator[None]:
        self._tally.phase = phase
        yield
