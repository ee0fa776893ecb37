"""Batch queries one after the other, as a program of its own: ``python -m tests.cluster.batch``."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import gpu_windows as gw
from tests.chaos.driver import late_rows, pairs, run
from tests.planning.queries import rows_of
from tests.spark_glue.stream_runs import outputs_of

JOIN = "interval join"
#: Queries of one input, which may be a table.
OF_ONE: dict[str, Callable[[Any], gw.typing.Outputs]] = {
    "late rows": late_rows,
    **{name: partial(outputs_of, name) for name in ("sliding", "sessions", "evictor", "top")},
}
QUERIES = (*OF_ONE, JOIN)
#: Into so many tasks the input is cut.
_TASKS = 8
#: Says that no more rounds are wanted.
ENOUGH = "enough"


def main() -> None:
    """Run every query in each round; write what it gives under the number of the round."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--settings", type=json.loads, default={}, help="JSON, of Spark")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--queries", default=",".join(QUERIES))
    parser.add_argument("--stream", default="", help="One of tests.chaos.driver, afterwards.")
    folder, settings, rounds, queries, stream = vars(parser.parse_args()).values()
    from pyspark.sql import SparkSession

    spark = gw.configure(SparkSession.builder).config(map=settings).getOrCreate()
    rows = spark.read.parquet(str(folder / "in")).repartition(_TASKS)
    (folder / "results").mkdir()
    for number in range(rounds):
        for name in queries.split(","):
            halves = (rows.where("seq % 2 = 0"), rows.where("seq % 2 = 1"))
            outputs = pairs(*halves) if name == JOIN else OF_ONE[name](rows)
            _write(outputs.result().toArrow(), folder / "results" / f"{number:03}-{name}.parquet")
        if (folder / ENOUGH).exists():
            break
    if stream:
        run(spark, stream, folder)
    spark.stop()


def _write(table: pa.Table, path: Path) -> None:
    """Write a file at once or not at all."""
    pq.write_table(table, path.with_suffix(".part"))
    path.with_suffix(".part").rename(path)


def wanted(folder: Path, name: str) -> list[tuple[Any, ...]]:
    """Return the rows that the local runner gives of the same input."""
    table = pq.read_table(folder / "in")
    even = pc.equal(pc.bit_wise_and(table["seq"], 1), 0)
    halves = (table.filter(even), table.filter(pc.invert(even)))
    outputs = pairs(*halves) if name == JOIN else OF_ONE[name](table)
    return rows_of(outputs.result())


class BatchRun:
    """A run of this program in a process group of its own."""

    def __init__(
        self,
        folder: Path,
        settings: dict[str, str],
        rounds: int = 1,
        queries: str = ",".join(QUERIES),
        stream: str = "",
    ) -> None:
        command = [sys.executable, "-m", "tests.cluster.batch", str(folder)]
        command += ["--settings", json.dumps(settings), "--rounds", str(rounds)]
        command += ["--queries", queries, "--stream", stream]
        self._folder = folder
        with (folder / "log").open("ab") as log:
            self._process = psutil.Popen(command, stdout=log, stderr=log, start_new_session=True)

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    @property
    def committed(self) -> int:
        """How many queries have given their results."""
        return len(self.results())

    def results(self) -> list[Path]:
        """Return the files of results."""
        return sorted((self._folder / "results").glob("*.parquet"))

    def until_next_commit(self) -> float:
        """Wait until one more query has given its results, or all have; return the seconds."""
        began, known = time.monotonic(), self.committed
        while self.is_running and self.committed == known:
            time.sleep(0.01)
        return time.monotonic() - began

    def finish(self) -> None:
        """Have the round be the last, and wait for the end, which must be a good one."""
        (self._folder / ENOUGH).touch()
        if self._process.wait(300) != 0:
            raise AssertionError((self._folder / "log").read_text(errors="replace")[-5_000:])


if __name__ == "__main__":
    main()
