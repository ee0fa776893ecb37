"""Contestants that are streaming queries: each is given a micro-batch at a time, in turns."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks import processes
from benchmarks.contest import Factory, Work
from benchmarks.engines.streams import BEHIND, StateSize, StreamQuery
from benchmarks.equality import canonical
from benchmarks.session_settings import change_settings
from benchmarks.stage import Stage
from benchmarks.stream_data import Batches, StreamData
from gpu_windows.vocabulary.options import ticks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery

#: Makes the micro-batches of a stage.
Supply = Callable[[Stage], Batches]
#: Reduces the results of a query to what is compared.
Answer = Callable[["DataFrame"], pa.Table]

#: The columns of micro-batches, as Spark names their types.
COLUMNS = "key long, ts timestamp, value double"
_WINDOW_END = "window_end"
#: Microseconds of Spark's unit of watermarks.
_MS = 1_000


@dataclass(frozen=True)
class MicroBatch:
    """What one micro-batch took.

    Parameters
    ----------
    at : float
        When it had ended, in seconds since the epoch.
    rows : int
        Of all inputs.
    seconds : float
        From its begin to its commit, as Spark says.
    cpu_seconds, compiler_seconds : float
        Of all processes meanwhile, and of the compilers of the JVM among them.
    state : StateSize
        After it.
    resident : dict of str to int
        See `benchmarks.processes.resident_bytes`.
    """

    at: float
    rows: int
    seconds: float
    cpu_seconds: float
    compiler_seconds: float
    state: StateSize
    resident: Mapping[str, int]


class Feed:
    """A streaming query that is given a micro-batch at a time, each as one file an input.

    Parameters
    ----------
    stage : Stage
    query : StreamQuery
        Is started when the first micro-batch comes.
    *batches : callable
        Makes the micro-batches of each input.
    """

    def __init__(self, stage: Stage, query: StreamQuery, *batches: Batches) -> None:
        self.query = query
        self._stage = stage
        self._batches = batches
        self._folder: Path | None = None
        self._running: StreamingQuery | None = None
        self._count = 0
        self._last = -1
        self._latest: list[int] = []
        self.history: list[MicroBatch] = []

    def next(self) -> float:
        """Give the query the next micro-batch, and return the seconds that it took."""
        self.history.append(self._next(self._start(self.query.settings)))
        return self.history[-1].seconds

    def finish(self) -> MicroBatch:
        """Start the query again from its checkpoint, and give it one more micro-batch.

        After it all is closed that the rows allow to close.
        """
        self.stop()
        return self._next(self._start(self.query.last_settings))

    def results(self) -> DataFrame:
        """Return all results; of windows those that had ended, in milliseconds, by the last row.

        Watermarks of Spark are of whole milliseconds, ours of microseconds: so we may have closed
        a session more.
        """
        from pyspark.sql import functions as sf

        assert self._folder is not None, "next comes first"
        results = self.query.results(self._spark, self._folder / "out")
        if _WINDOW_END not in results.columns:
            return results
        watermark = min(self._latest) // _MS * _MS - ticks(BEHIND)
        return results.where(sf.col(_WINDOW_END) <= sf.timestamp_micros(sf.lit(watermark)))

    def stop(self) -> None:
        """Stop the query; the next micro-batch starts it again from its checkpoint."""
        if self._running is not None:
            self._running.stop()
            self._running = None

    @property
    def _spark(self) -> SparkSession:
        return self._stage.resources.spark

    def _start(self, settings: Mapping[str, str]) -> StreamingQuery:
        """Return the query that runs; start it if none does."""
        if self._running is not None:
            return self._running
        spark = self._spark  # before what is to end before it
        if self._folder is None:
            self._folder = self._stage.resources.scratch()
            for folder in self._inputs:
                folder.mkdir()
            self._stage.resources.at_end(self.stop)
        inputs = [self.query.read(spark, str(folder), COLUMNS) for folder in self._inputs]
        with change_settings(spark, settings):
            out, checkpoint = (str(self._folder / name) for name in ("out", "checkpoint"))
            self._running = self.query.start(inputs, self._stage.window, out, checkpoint)
        return self._running

    def _next(self, query: StreamingQuery) -> MicroBatch:
        tables = [make(self._count) for make in self._batches]
        self._drop(tables)
        self._count += 1
        self._latest = [pc.max(table["ts"].cast(pa.int64())).as_py() for table in tables]
        before = processes.cpu_seconds(), processes.compiler_seconds()
        rows = sum(map(len, tables))
        progress = self._progress(query, len(tables) if self.query.counts_files else rows)
        assert self._folder is not None, "a query that runs has a folder"
        return MicroBatch(
            at=time.time(),
            rows=rows,
            seconds=sum(each.durationMs["triggerExecution"] for each in progress) / 1_000,
            cpu_seconds=processes.cpu_seconds() - before[0],
            compiler_seconds=processes.compiler_seconds() - before[1],
            state=self.query.state_size(query, self._folder / "checkpoint"),
            resident=processes.resident_bytes(),
        )

    @property
    def _inputs(self) -> list[Path]:
        """The folders of the inputs."""
        assert self._folder is not None
        return [self._folder / f"in-{place}" for place in range(len(self._batches))]

    def _drop(self, tables: Sequence[pa.Table]) -> None:
        """Write files that appear when all are complete: Spark does not see hidden ones."""
        name = f"{self._count:06}.parquet"
        drafts = [folder / f".{name}" for folder in self._inputs]
        for table, draft in zip(tables, drafts, strict=True):
            pq.write_table(table, draft)
        for draft in drafts:
            draft.rename(draft.with_name(name))

    def _progress(self, query: StreamingQuery, rows: int) -> list[StreamingQueryProgress]:
        """Wait until so many rows, or files, have been worked at.

        That is one micro-batch, or one for each input if Spark looked just between two files.
        """
        found: list[StreamingQueryProgress] = []
        while True:
            query.processAllAvailable()
            for progress in query.recentProgress:
                if progress.batchId > self._last and progress.numInputRows:
                    self._last = progress.batchId
                    found.append(progress)
            taken = sum(progress.numInputRows for progress in found)
            if taken == rows:
                return found
            if taken > rows or len(found) >= len(self._batches):
                message = f"{rows:,} rows given, {taken:,} taken"
                raise RuntimeError(message)


def data_of(stage: Stage) -> StreamData:
    """Return the data of a stage of streams."""
    data = stage.resources.data_set
    assert isinstance(data, StreamData)
    return data


def aggregates(results: DataFrame) -> pa.Table:
    """Return the aggregates of windows as they are."""
    return canonical(results.toArrow())


def with_result(query: StreamQuery, answer: Answer = aggregates) -> Factory:
    """Make a contestant of a streaming query, which is given the micro-batches of the data.

    A run is a micro-batch. The result is that of all of them.
    """

    def factory(stage: Stage) -> Work:
        feed = Feed(stage, query, *data_of(stage).inputs)

        def result() -> pa.Table:
            return answer(feed.results())

        def warm(seconds: float) -> None:
            _work_for(seconds, Feed(stage, query, *data_of(stage).inputs))

        return Work(feed.next, stage.window, result, details=partial(_details, feed), warm=warm)

    return factory


def _work_for(seconds: float, feed: Feed) -> None:
    """Have a query work at micro-batches for some seconds, and end it."""
    done = 0.0
    while done < seconds:
        done += feed.next()
    feed.stop()


def without_result(query: StreamQuery, supply: Supply) -> Factory:
    """Make a contestant of a streaming query with micro-batches of its own and no result."""

    def factory(stage: Stage) -> Work:
        feed = Feed(stage, query, supply(stage))
        return Work(feed.next, stage.window, details=partial(_details, feed))

    return factory


def _details(feed: Feed, runs: Sequence[int]) -> dict[str, Any]:
    """Return what some micro-batches took besides time, and what state is left after one more."""
    counted = [feed.history[run] for run in runs]
    left = feed.finish().state
    return {
        "rows_a_second": counted[-1].rows / statistics.median(each.seconds for each in counted),
        "cpu_s": statistics.median(each.cpu_seconds for each in counted),
        "state_in": feed.query.state_in,
        "state_rows": left.entries,
        "state_held_bytes": max(each.state.held_bytes for each in counted),
        "state_live_bytes": left.file_bytes if left.live_bytes is None else left.live_bytes,
    }
