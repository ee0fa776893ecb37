"""A process of its own that runs a streaming query by the gpu_windows of some checkout.

Run by `benchmarks.checkouts`: ``python -m benchmarks.checkout_turn`` with the parameters as one
JSON argument; the last line that it writes is the answer.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

import gpu_windows
from benchmarks import processes
from benchmarks.contest import Window
from benchmarks.engines import ours, over, spark
from benchmarks.engines.streams import OurQuery, SparkQuery, StateSize
from benchmarks.stage import Resources, Stage
from benchmarks.stream_data import StreamData, TwoStreams
from benchmarks.streams import Feed, MicroBatch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


@dataclass(frozen=True)
class AnyEngineQuery(OurQuery):
    """A query of ours in any checkout; nothing is said of its state.

    Former engines kept state by Spark: the settings are those of Spark's own queries.
    """

    settings: ClassVar[Mapping[str, str]] = SparkQuery.settings

    def state_size(self, query: StreamingQuery, checkpoint: Path) -> StateSize:
        """Return nothing."""
        del query, checkpoint
        return StateSize(0, 0, 0)


@dataclass(frozen=True)
class Case:
    """A query over micro-batches, in each of which windows fire.

    Parameters
    ----------
    query : OurQuery
    window : Window
    inputs : int
        How many inputs share the rows of a micro-batch.
    """

    query: AnyEngineQuery
    window: Window
    inputs: int = 1

    def data(self, rows: int, keys: int) -> StreamData:
        """Return micro-batches with so many rows, of all inputs."""
        kind = StreamData if self.inputs == 1 else TwoStreams
        return kind(rows // self.inputs, keys)


CASES: Mapping[str, Case] = {
    "tumbling": Case(AnyEngineQuery(ours.query), Window.of("1 minute")),
    "sliding": Case(AnyEngineQuery(ours.query), Window.of("60 minutes", "1 minute")),
    "session": Case(AnyEngineQuery(ours.sessions), Window.of("5 seconds")),
    "interval_join": Case(AnyEngineQuery(ours.in_time), Window.of("5 seconds"), 2),
    "over": Case(AnyEngineQuery(over.outputs), Window.of("1 minute")),
}


@dataclass(frozen=True)
class Size:
    """Micro-batches of a query.

    Parameters
    ----------
    rows, keys : int
        Of a micro-batch.
    warmups, batches : int
        Micro-batches before those that count, and those.
    """

    rows: int
    keys: int
    warmups: int
    batches: int


def measure(case: Case, size: Size, session: SparkSession) -> dict[str, float]:
    """Run a query; return the means of its micro-batches."""
    data = case.data(size.rows, size.keys)
    with Resources(data, Path(gettempdir()), spark=session) as resources:
        feed = Feed(Stage(resources, case.window), case.query, *data.inputs)
        for _ in range(size.warmups + size.batches):
            feed.next()
    return means(feed.history[size.warmups :])


def means(counted: list[MicroBatch]) -> dict[str, float]:
    """Return processor seconds a million rows, without those of the JVM's compilers, and time."""
    rows = sum(each.rows for each in counted)
    compilers = sum(each.compiler_seconds for each in counted)
    return {
        "cpu_s_a_million_rows": (sum(e.cpu_seconds for e in counted) - compilers) / rows * 1e6,
        "compiler_s_a_million_rows": compilers / rows * 1e6,
        "ms_a_micro_batch": statistics.fmean(each.seconds for each in counted) * 1e3,
    }


def _require(root: Path, session: SparkSession) -> None:
    """Require that this process and Spark's workers run the checkout."""

    def place(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import gpu_windows as theirs

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"path": [theirs.__file__]})

    (row,) = session.range(1).mapInArrow(place, "path string").collect()
    for path in (gpu_windows.__file__, row.path):
        if Path(path).resolve().parents[1] != root.resolve():
            message = f"gpu_windows must be that of {root}, got {path}"
            raise RuntimeError(message)


def main(argument: str) -> None:
    """Measure a case at all sizes, and write the answer."""
    parameters: dict[str, Any] = json.loads(argument)
    with spark.session(processes.STEADY_COMPILERS) as session:
        _require(Path(parameters["checkout"]), session)
        case = CASES[parameters["case"]]
        found = [measure(case, Size(**size), session) for size in parameters["sizes"]]
    sys.stdout.write(f"{json.dumps(found)}\n")


if __name__ == "__main__":
    main(sys.argv[1])
