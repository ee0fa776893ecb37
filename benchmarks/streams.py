"""Contestants that are streaming queries: each is given a micro-batch at a time, in turns."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import processes
from benchmarks.contest import Factory, Work
from benchmarks.engines.streams import written
from benchmarks.equality import canonical
from benchmarks.stage import Stage
from benchmarks.stream_data import Batches, StreamData
from gpu_windows.monitoring.progress import BatchMetrics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery

    from benchmarks.engines.streams import Start

#: Makes the micro-batches of a stage.
Supply = Callable[[Stage], Batches]
#: Reduces what a query has written to what is compared.
Answer = Callable[["DataFrame"], pa.Table]

#: The columns of micro-batches, as Spark names their types.
COLUMNS = "key long, ts timestamp, value double"
#: What closes windows comes with the rows of the next micro-batch, as on a stream that never rests.
STREAMING = {"spark.sql.streaming.noDataMicroBatches.enabled": "false"}
#: With these RocksDB has nothing in memory, and nothing twice in its files, after a micro-batch.
COMPACTED = {
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "false",
    "spark.sql.streaming.stateStore.rocksdb.compactOnCommit": "true",
}


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
    cpu_seconds : float
        Of all processes meanwhile.
    state_rows : int
        Entries in the state store.
    state_bytes : int
        Memory and files of RocksDB, garbage included.
    file_bytes : int
        Files of RocksDB alone.
    live_bytes_change : int
        How many bytes more of state there are than before, as our operators count; 0 for others.
    resident : dict of str to int
        See `benchmarks.processes.resident_bytes`.
    """

    at: float
    rows: int
    seconds: float
    cpu_seconds: float
    state_rows: int
    state_bytes: int
    file_bytes: int
    live_bytes_change: int
    resident: Mapping[str, int]


class Feed:
    """A streaming query that is given a micro-batch at a time, each as one file an input.

    Parameters
    ----------
    stage : Stage
    start : callable
        Starts the query, when the first micro-batch comes.
    *batches : callable
        Makes the micro-batches of each input.
    """

    def __init__(self, stage: Stage, start: Start, *batches: Batches) -> None:
        self._stage = stage
        self._start = start
        self._batches = batches
        self._folder: Path | None = None
        self._query: StreamingQuery | None = None
        self._given = 0
        self._last = -1
        self.history: list[MicroBatch] = []

    def next(self) -> float:
        """Give the query the next micro-batch, and return the seconds that it took."""
        query = self._running(STREAMING)
        tables = [make(self._given) for make in self._batches]
        self._drop(tables)
        self._given += 1
        before = processes.cpu_seconds()
        progress = self._progress(query, sum(map(len, tables)))
        self.history.append(_seen(progress, processes.cpu_seconds() - before))
        return self.history[-1].seconds

    def compacted_bytes(self) -> int:
        """Start again with settings that leave only live state, and return its bytes in files.

        Takes one more micro-batch.
        """
        self.stop()
        self._running({**STREAMING, **COMPACTED})
        self.next()
        return self.history.pop().file_bytes

    def written(self) -> DataFrame:
        """Return all that has been written."""
        assert self._folder is not None, "next comes first"
        return written(self._spark, self._folder / "out")

    def stop(self) -> None:
        """Stop the query; the next micro-batch starts it again from its checkpoint."""
        if self._query is not None:
            self._query.stop()
            self._query = None

    @property
    def _spark(self) -> SparkSession:
        return self._stage.resources.spark

    def _running(self, settings: Mapping[str, str]) -> StreamingQuery:
        if self._query is not None:
            return self._query
        spark = self._spark  # before what is to end before it
        if self._folder is None:
            self._folder = self._stage.resources.scratch()
            for folder in self._inputs:
                folder.mkdir()
            self._stage.resources.at_end(self.stop)
        reader = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1)
        frames = [reader.parquet(str(folder)) for folder in self._inputs]
        with _configured(spark, settings):
            out, checkpoint = (str(self._folder / name) for name in ("out", "checkpoint"))
            self._query = self._start(frames, self._stage.window, out, checkpoint)
        return self._query

    @property
    def _inputs(self) -> list[Path]:
        """The folders of the inputs."""
        assert self._folder is not None
        return [self._folder / f"in-{place}" for place in range(len(self._batches))]

    def _drop(self, tables: Sequence[pa.Table]) -> None:
        """Write files that appear when all are complete: Spark does not see hidden ones."""
        name = f"{self._given:06}.parquet"
        drafts = [folder / f".{name}" for folder in self._inputs]
        for table, draft in zip(tables, drafts, strict=True):
            pq.write_table(table, draft)
        for draft in drafts:
            draft.rename(draft.with_name(name))

    def _progress(self, query: StreamingQuery, rows: int) -> list[StreamingQueryProgress]:
        """Wait until the files have been worked at.

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


@contextmanager
def _configured(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Have settings that a query takes over when it starts."""
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)


def _seen(found: Sequence[StreamingQueryProgress], cpu_seconds: float) -> MicroBatch:
    (state,) = found[-1].stateOperators
    file_bytes = int(state.customMetrics["rocksdbSstFileSize"])
    ours = [batch for batch in map(BatchMetrics.of, found) if batch is not None]
    return MicroBatch(
        time.time(),
        sum(progress.numInputRows for progress in found),
        sum(progress.durationMs["triggerExecution"] for progress in found) / 1_000,
        cpu_seconds,
        state.numRowsTotal,
        state.memoryUsedBytes + file_bytes,
        file_bytes,
        sum(batch.state_bytes_change for batch in ours),
        processes.resident_bytes(),
    )


def data_of(stage: Stage) -> StreamData:
    """Return the data of a stage of streams."""
    data = stage.resources.data_set
    assert isinstance(data, StreamData)
    return data


def aggregates(written: DataFrame) -> pa.Table:
    """Return the aggregates of windows as they are."""
    return canonical(written.toArrow())


def fed(start: Start, answer: Answer = aggregates) -> Factory:
    """Make a contestant of a streaming query, which is given the micro-batches of the data.

    A run is a micro-batch. The result is that of all of them.
    """

    def factory(stage: Stage) -> Work:
        feed = Feed(stage, start, *data_of(stage).inputs)

        def result() -> pa.Table:
            return answer(feed.written())

        def warm(seconds: float) -> None:
            _work_for(seconds, Feed(stage, start, *data_of(stage).inputs))

        return Work(feed.next, stage.window, result, details=partial(_sustained, feed), warm=warm)

    return factory


def _work_for(seconds: float, feed: Feed) -> None:
    """Have a query work at micro-batches for some seconds, and end it."""
    done = 0.0
    while done < seconds:
        done += feed.next()
    feed.stop()


def filled(start: Start, supply: Supply) -> Factory:
    """Make a contestant of a streaming query with micro-batches of its own and no result."""

    def factory(stage: Stage) -> Work:
        feed = Feed(stage, start, supply(stage))
        return Work(feed.next, stage.window, details=partial(_sustained, feed))

    return factory


def _sustained(feed: Feed, runs: Sequence[int]) -> dict[str, float]:
    """Return what some micro-batches took besides time, and what their state takes."""
    last = [feed.history[run] for run in runs]
    return {
        "rows_a_second": last[-1].rows / statistics.median(each.seconds for each in last),
        "cpu_s": statistics.median(each.cpu_seconds for each in last),
        "state_rows": last[-1].state_rows,
        "state_held_bytes": max(each.state_bytes for each in last),
        "state_live_bytes": feed.compacted_bytes(),
    }
