"""``python -m tests.chaos.executors FOLDER``: an executor dies while a sink has its micro-batch.

What was computed of the micro-batch is in files by then, and so is the state that the next one goes
on from.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pyspark

import gpu_windows as gw
from tests.chaos.driver import SCHEMA
from tests.spark_glue.stream_runs import outputs_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Micro-batches in which one dies.
DIE = (1, 2)
#: What the main program of an executor is called.
_EXECUTOR = "CoarseGrainedExecutorBackend"


def main(folder: Path) -> None:
    """Run sliding windows over the files of a folder on two executors; write results as JSON."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    from pyspark.sql import SparkSession

    builder = gw.configure(SparkSession.builder.master("local-cluster[2,1,1024]"))
    settings: dict[str, bool | float | int | str | None] = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "spark.log.level": "OFF",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    spark = builder.config(map=settings).getOrCreate()
    rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    outputs = outputs_of("sliding", rows.parquet(str(folder / "in")))
    died: list[int] = []

    def sink(results: DataFrame, _: DataFrame, number: int) -> None:
        if number in DIE:
            died.append(_kill_one())
        found = sorted(map(repr, results.toArrow().to_pylist()))
        (folder / f"{number}.json").write_text(json.dumps(found))

    query = gw.write_stream(outputs, sink, folder / "state", trigger={"availableNow": True})
    query.awaitTermination()
    spark.stop()
    assert len(set(died)) == len(DIE)


def _kill_one() -> int:
    """Kill an executor that has worked; Spark starts another one."""
    found = [p for p in psutil.Process().children(recursive=True) if _is_executor(p)]
    victim = max(found, key=lambda process: process.cpu_times().user)
    victim.kill()
    time.sleep(1.0)  # the driver hears of it
    return victim.pid


def _is_executor(process: psutil.Process) -> bool:
    try:
        return any(_EXECUTOR in word for word in process.cmdline())
    except psutil.Error:
        return False


if __name__ == "__main__":
    main(Path(sys.argv[1]))
