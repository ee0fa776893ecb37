"""A batch query that writes Parquet, a program of its own: a worker of it dies, or its driver."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

import gpu_windows as gw
from gpu_windows.commits.bounded_write import BoundedWrite

SECOND = 1_000_000
KEYS, ROWS = 8, 400
#: Results of the query: of each key a window for every ten of its rows.
RESULTS = ROWS // 10


def rows() -> pa.Table:
    """Return the rows of the query; those of a key are a second apart."""
    times = [n // KEYS * SECOND for n in range(ROWS)]
    return pa.table(
        {
            "key": pa.array([n % KEYS for n in range(ROWS)], pa.int64()),
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "v": pa.array(range(ROWS), pa.int64()),
        }
    )


class Dying(gw.functions.ProcessWindowFunction):
    """Counts rows; at the last window of a key its process dies, as long as a file says so."""

    def __init__(self, marker: str) -> None:
        self.marker = marker

    def process(
        self, key: Mapping[str, Any], context: gw.typing.ProcessContext, rows: pa.Table
    ) -> Iterator[dict[str, Any]]:
        """Yield the number of rows."""
        assert isinstance(context.window, gw.typing.TimeWindow)
        is_last = context.window.end >= ROWS // KEYS * SECOND
        if key["key"] == 3 and is_last and Path(self.marker).exists():
            Path(self.marker).unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        yield {"n": len(rows)}


def outputs_of(source: Any, marker: str) -> gw.typing.Outputs:
    """Return the query over rows of `rows`."""
    in_order = gw.WatermarkStrategy.for_monotonous_timestamps()
    keyed = gw.stream(source).event_time("ts", in_order).key_by("key")
    window = keyed.window(gw.TumblingEventTimeWindows.of("10 s"))
    return window.with_outputs().process(
        Dying(marker), ("v",), output=pa.schema([("n", pa.int64())])
    )


def main(way: str, path: str, marker: str) -> None:
    """Write; ``way``: "worker" or "driver" dies."""
    from pyspark.sql import SparkSession

    session = (
        gw.configure(SparkSession.builder.master("local[2,3]"))
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    if way == "driver":
        BoundedWrite.commit = lambda *_: os._exit(9)  # type: ignore[method-assign]
    frame = session.createDataFrame(rows())
    written = outputs_of(frame, marker).write_parquet(path)
    assert written.written_by == "tasks", written
    session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
