"""What a micro-batch costs a query on a cluster whose checkpoint is in a store of objects.

``python -m benchmarks.remote_stream --jars DIR``: windows of a day of many keys, of which a
micro-batch touches a few, by gpu_windows and by Spark's own aggregation, whose state RocksDB has,
with and without changelogs. The cluster is on loopback, the store is moto's S3, which answers each
request late. ``DIR`` has the jars of hadoop-aws, of the Hadoop that PySpark has.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import typer
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table

import gpu_windows as gw
from benchmarks.machine import describe
from benchmarks.remote_server import RemoteServer, run_server
from tests.checkpointing.s3_server import KEY, REGION, SECRET, Request, count_rounds
from tests.cluster.applications import SHARED, settings
from tests.cluster.standalone import Cluster

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

#: Columns of random numbers of a row, of each of which a window has the maximum.
_VALUES = 25
_VALUE_BYTES = 8 * _VALUES
_FILLED = 1_000_000
_DAY = "1 day"
_SHARDS = 4
_FOLDERS = "offsets", "commits", "sources", "state", "metadata"

app = typer.Typer(add_completion=False)


@dataclass(frozen=True)
class Contestant:
    """A way to run the query.

    Parameters
    ----------
    start : callable
        Starts it, given its rows and a folder on this disk; and the URL of its checkpoint.
    settings : mapping of str to str
        Of the session.
    """

    start: Callable[[DataFrame, Path, str], StreamingQuery]
    settings: Mapping[str, str]


def _start_ours(rows: DataFrame, folder: Path, checkpoint: str) -> StreamingQuery:
    return _write(_windows(rows), folder, checkpoint)


def _start_reading(rows: DataFrame, folder: Path, checkpoint: str) -> StreamingQuery:
    """Start it with a result for each row: the state of its key must be read."""
    return _write(_windows(rows).trigger(gw.CountTrigger.of(1)), folder, checkpoint)


def _windows(rows: DataFrame) -> Any:
    watermarks = gw.WatermarkStrategy.for_monotonous_timestamps()
    keyed = gw.stream(rows).event_time("ts", watermarks).key_by("key")
    return keyed.window(gw.TumblingEventTimeWindows.of(_DAY)).options(shards=_SHARDS)


def _write(windows: Any, folder: Path, checkpoint: str) -> StreamingQuery:
    outputs = windows.with_outputs().aggregate(**{f"m{n}": gw.max(f"v{n}") for n in range(_VALUES)})
    return gw.write_stream(outputs, folder / "out", checkpoint)


def _start_spark(rows: DataFrame, folder: Path, checkpoint: str) -> StreamingQuery:
    from pyspark.sql.functions import max as max_of
    from pyspark.sql.functions import window

    del folder
    maxima = [max_of(f"v{n}").alias(f"m{n}") for n in range(_VALUES)]
    windows = rows.withWatermark("ts", "0 seconds").groupBy(window("ts", _DAY), "key")
    written = windows.agg(*maxima).writeStream.format("noop").outputMode("append")
    return written.option("checkpointLocation", checkpoint).start()


_STORE = "spark.sql.streaming.stateStore"
_ROCKSDB = {
    f"{_STORE}.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}
_CHANGELOG = f"{_STORE}.rocksdb.changelogCheckpointing.enabled"
CONTESTANTS = {
    "gpu_windows": Contestant(_start_ours, {}),
    "gpu_windows, a result a row": Contestant(_start_reading, {}),
    "spark, changelog": Contestant(_start_spark, {**_ROCKSDB, _CHANGELOG: "true"}),
    "spark, snapshots": Contestant(_start_spark, {**_ROCKSDB, _CHANGELOG: "false"}),
}


@dataclass(frozen=True)
class Cost:
    """What a micro-batch costs.

    Parameters
    ----------
    requests : tuple of Request
    seconds : float
        From its trigger on, by Spark.
    """

    requests: tuple[Request, ...]
    seconds: float

    def count(self, *, ours: bool) -> int:
        """Return how many requests are for state, results and commits; or for Spark's offsets."""
        return sum(is_of_state(each) == ours for each in self.requests)


def is_of_state(request: Request) -> bool:
    """Whether a request is for the state of an engine, and not for what Spark notes of sources."""
    return folder_of(request).partition("/")[0] in ("gpu_windows", "state")


def folder_of(request: Request) -> str:
    """Return the folder in a checkpoint that a request is for."""
    names = request.key.split("/")[1:]
    return "/".join(names[: 2 if names[:1] == ["gpu_windows"] else 1]) or "(checkpoint)"


class Feed:
    """A query that is given micro-batches, a file each.

    Parameters
    ----------
    contestant : Contestant
    spark : pyspark.sql.SparkSession
    server : RemoteServer
    folder : pathlib.Path
        For its rows.
    name : str
        Of its checkpoint.
    """

    def __init__(
        self,
        contestant: Contestant,
        spark: SparkSession,
        server: RemoteServer,
        folder: Path,
        name: str,
    ) -> None:
        self._server, self._files, self._count = server, folder / "in", 0
        self._files.mkdir(parents=True)
        self._rng = np.random.default_rng(7)
        schema = f"key long, ts timestamp, {', '.join(f'v{n} double' for n in range(_VALUES))}"
        source = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        rows = source.parquet(str(self._files))
        self._query = contestant.start(rows, folder, f"s3a://{server.bucket}/{name}")

    def run(self, keys: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Cost:
        """Run a micro-batch with a row of each of some keys."""
        self._query.processAllAvailable()
        self._server.take_requests()
        columns: dict[str, object] = {"key": keys}
        second = pa.scalar(1_704_067_200_000_000 + self._count * 1_000_000)
        times = pa.array(np.full(len(keys), second.as_py()), pa.timestamp("us", "UTC"))
        columns |= {"ts": times}
        columns |= {f"v{n}": self._rng.random(len(keys)) for n in range(_VALUES)}
        draft = self._files / f".{self._count:06}"
        pq.write_table(pa.table(columns), draft)
        draft.rename(self._files / f"{self._count:06}.parquet")
        self._count += 1
        self._query.processAllAvailable()
        time.sleep(0.2)  # what is deleted after a micro-batch
        done = [each for each in self._query.recentProgress if each.numInputRows]
        assert len(done) == self._count, "a micro-batch has a file"
        return Cost(
            tuple(self._server.take_requests()), done[-1].durationMs["triggerExecution"] / 1e3
        )

    def stop(self) -> None:
        """End the query."""
        self._query.stop()


@app.command()
def main(
    jars: Annotated[Path, typer.Option(help="Folder with the jars of hadoop-aws.")],
    megabytes: Annotated[int, typer.Option(help="State in all.")] = 1_000,
    touched: Annotated[int, typer.Option(help="Keys of a micro-batch.")] = 100,
    delay_ms: Annotated[int, typer.Option(help="By which an answer is late.")] = 20,
    turns: Annotated[int, typer.Option(help="Micro-batches that count.")] = 15,
    only: Annotated[str, typer.Option(help="Contestants, with semicolons.")] = "",
    *,
    details: Annotated[bool, typer.Option(help="Count requests by kind and folder.")] = False,
) -> None:
    """Measure micro-batches of queries on four executors, with their state in a store."""
    keys = max(int(megabytes * 1e6) // _VALUE_BYTES, touched)
    names = (
        "",
        "ms",
        "requests",
        "of state",
        "of offsets",
        "rounds",
        "read",
        "written",
        "fill s",
        "stored",
    )
    table = Table(*names, title=f"{keys:,} keys of {_VALUE_BYTES} bytes, {touched} touched")
    with run_server() as server, TemporaryDirectory() as name:
        folder = Path(name)
        with Cluster(folder / "cluster", workers=_SHARDS, memory="1g") as cluster:
            for number, name in enumerate(only.split(";") if only else CONTESTANTS):
                place = folder / str(number)
                spark = _session(cluster, server, jars, place, CONTESTANTS[name])
                server.set_delay(0)
                feed = Feed(CONTESTANTS[name], spark, server, place, f"checkpoint-{number}")
                fill_seconds = _fill(feed, keys)
                server.set_delay(delay_ms / 1e3)
                rng = np.random.default_rng(number)
                costs = [
                    feed.run(rng.choice(keys, touched, replace=False)) for _ in range(turns + 3)
                ]
                feed.stop()
                server.set_delay(0)
                spark.stop()
                stored = decimal(server.count_bytes(f"checkpoint-{number}"))
                table.add_row(name, *_medians(costs[3:]), f"{fill_seconds:.0f}", stored)
                if details:
                    Console(width=120).print(_count(name, costs[-1].requests))
                Console(width=140).print(table)  # so far: the next one may fail
    Console(width=140).print(describe())


def _fill(feed: Feed, keys: int) -> float:
    """Bring all keys; return the seconds of it."""
    return sum(
        feed.run(np.arange(begin, min(begin + _FILLED, keys))).seconds
        for begin in range(0, keys, _FILLED)
    )


def _session(
    cluster: Cluster, server: RemoteServer, jars: Path, place: Path, contestant: Contestant
) -> SparkSession:
    from pyspark.sql import SparkSession

    path = f"{jars.resolve()}/*"
    s3 = {
        "access.key": KEY,
        "secret.key": SECRET,
        "endpoint": server.url,
        "endpoint.region": REGION,
        "path.style.access": "true",
        "connection.ssl.enabled": "false",
    }
    more = {
        **SHARED,
        "spark.driver.extraClassPath": path,
        "spark.executor.extraClassPath": path,
        "spark.sql.shuffle.partitions": str(_SHARDS),
        **{f"spark.hadoop.fs.s3a.{name}": value for name, value in s3.items()},
        **contestant.settings,
    }
    builder = SparkSession.builder
    for name, value in settings(cluster, place / "events", more).items():
        builder = builder.config(name, value)
    return gw.configure(builder).getOrCreate()


def _medians(costs: Sequence[Cost]) -> list[str]:
    """Return medians, as the table has them."""

    def median(value: Callable[[Cost], float]) -> float:
        return statistics.median(map(value, costs))

    return [
        f"{median(lambda cost: cost.seconds) * 1e3:.0f}",
        f"{median(lambda cost: len(cost.requests)):.0f}",
        f"{median(lambda cost: cost.count(ours=True)):.0f}",
        f"{median(lambda cost: cost.count(ours=False)):.0f}",
        f"{median(lambda cost: count_rounds(cost.requests)):.0f}",
        decimal(round(statistics.mean(sum(r.sent for r in cost.requests) for cost in costs))),
        decimal(round(statistics.mean(sum(r.received for r in cost.requests) for cost in costs))),
    ]


def _count(name: str, requests: Iterable[Request]) -> Table:
    """Return how many requests there were, by kind and folder."""
    counts = Counter((folder_of(each), each.kind) for each in requests)
    table = Table("folder", "request", "count", title=name)
    for (folder, kind), count in sorted(counts.items()):
        table.add_row(folder, kind, str(count))
    return table


if __name__ == "__main__":
    app()
