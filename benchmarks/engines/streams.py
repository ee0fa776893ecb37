"""Streaming queries of ours and of Spark, written to Parquet micro-batch by micro-batch by both."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import gpu_windows as gw
from benchmarks.contest import Window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

#: How long rows may stand behind later ones.
BEHIND = "5 seconds"
#: How often a query looks for a new file; not part of what is measured.
_TRIGGER = {"processingTime": "1 second"}
#: Spark keeps state by RocksDB and writes what has changed, not all that it holds.
_ROCKSDB = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
#: Whether Spark runs a micro-batch without rows to close what the rows before allow to close.
_WITHOUT_ROWS = "spark.sql.streaming.noDataMicroBatches.enabled"
#: With these RocksDB has nothing in memory, and nothing twice in its files, after a micro-batch.
_COMPACTED = {
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "false",
    "spark.sql.streaming.stateStore.rocksdb.compactOnCommit": "true",
}


@dataclass(frozen=True)
class StateSize:
    """What the state of a query takes after a micro-batch.

    Parameters
    ----------
    entries : int
        Of the state: slices, windows, rows, or whatever the engine has an entry for.
    file_bytes : int
        Of its files, with what in them is dead.
    held_bytes : int
        Of its files, and of what the engine has in memory for it from one micro-batch to the next.
    live_bytes : int, optional
        Of what a later micro-batch may read; None if the engine does not count them.
    """

    entries: int
    file_bytes: int
    held_bytes: int
    live_bytes: int | None = None


class StreamQuery(ABC):
    """A streaming query of a contestant.

    Attributes
    ----------
    state_in : str
        What keeps its state.
    settings, last_settings : mapping of str to str
        Settings of Spark with which it starts; those of its last start, after which its state is
        looked at.
    """

    state_in: ClassVar[str]
    settings: ClassVar[Mapping[str, str]] = {}
    last_settings: ClassVar[Mapping[str, str]] = {}
    #: Whether Spark's progress counts files in the place of their rows.
    counts_files: ClassVar[bool] = False

    def read(self, spark: SparkSession, folder: str, schema: str) -> Any:
        """Return the files that come to a folder, one a micro-batch, as an input."""
        reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        return reader.parquet(folder)

    @abstractmethod
    def start(
        self, inputs: Sequence[Any], window: Window, out: str, checkpoint: str
    ) -> StreamingQuery:
        """Start it on what `read` returned; ``out``: the folder of its results."""

    @abstractmethod
    def results(self, spark: SparkSession, out: Path) -> DataFrame:
        """Return all that it has given."""

    @abstractmethod
    def state_size(self, query: StreamingQuery, checkpoint: Path) -> StateSize:
        """Return what its state takes after the last micro-batch."""


@dataclass(frozen=True)
class OurQuery(StreamQuery):
    """A query of ours, by `gpu_windows.write_stream`.

    Parameters
    ----------
    query : callable
        Writes it, given each DataFrame and the windows.
    """

    query: Callable[..., gw.typing.Outputs]
    state_in: ClassVar[str] = "files"

    def start(
        self, inputs: Sequence[Any], window: Window, out: str, checkpoint: str
    ) -> StreamingQuery:
        """Start it."""
        return gw.write_stream(self.query(*inputs, window), out, checkpoint, trigger=_TRIGGER)

    def results(self, spark: SparkSession, out: Path) -> DataFrame:
        """Return all that it has given."""
        return gw.read_output(spark, out)

    def state_size(self, query: StreamingQuery, checkpoint: Path) -> StateSize:
        """Return the bytes of its state files, and those that are live by its metrics."""
        from gpu_windows.checkpointing.files import FOLDER  # another checkout may have none
        from gpu_windows.monitoring.queries import read_metrics

        metrics = read_metrics(str(query.id))
        assert metrics, "a micro-batch comes first"
        found = (checkpoint / FOLDER / "state").rglob("*")
        size = sum(path.stat().st_size for path in found if path.is_file())
        return StateSize(metrics[-1].state_rows, size, size, metrics[-1].state_bytes)


@dataclass(frozen=True)
class OurScan(OurQuery):
    """The same over files that tasks read by themselves."""

    counts_files: ClassVar[bool] = True

    def read(self, spark: SparkSession, folder: str, schema: str) -> Any:
        """Return the files that come to a folder as a scan."""
        return gw.scan_stream(folder, spark, schema=schema, max_files_per_trigger=1)


@dataclass(frozen=True)
class SparkQuery(StreamQuery):
    """A query of Spark; what an interrupted micro-batch wrote is replaced, as in ours.

    What closes its windows comes with the rows of the next micro-batch, as on a stream that never
    rests. After its last start a micro-batch without rows closes what is left to close.

    Parameters
    ----------
    query : callable
        Writes it, given each DataFrame and the windows.
    """

    query: Callable[..., DataFrame]
    state_in: ClassVar[str] = "RocksDB"
    settings: ClassVar[Mapping[str, str]] = {**_ROCKSDB, _WITHOUT_ROWS: "false"}
    last_settings: ClassVar[Mapping[str, str]] = {**_ROCKSDB, **_COMPACTED, _WITHOUT_ROWS: "true"}

    def start(
        self, inputs: Sequence[Any], window: Window, out: str, checkpoint: str
    ) -> StreamingQuery:
        """Start it."""

        def write(results: DataFrame, number: int) -> None:
            results.write.mode("overwrite").parquet(f"{out}/batch={number}")

        answer = self.query(*(frame.withWatermark("ts", BEHIND) for frame in inputs), window)
        writer = answer.writeStream.outputMode("append").foreachBatch(write)
        return writer.option("checkpointLocation", checkpoint).trigger(**_TRIGGER).start()

    def results(self, spark: SparkSession, out: Path) -> DataFrame:
        """Return all that it has given."""
        return spark.read.parquet(str(out)).drop("batch")

    def state_size(self, query: StreamingQuery, checkpoint: Path) -> StateSize:
        """Return the figures of Spark's progress."""
        del checkpoint
        progress = query.lastProgress
        assert progress is not None, "a micro-batch comes first"
        (state,) = progress.stateOperators
        files = int(state.customMetrics["rocksdbSstFileSize"])
        return StateSize(state.numRowsTotal, files, state.memoryUsedBytes + files)
