"""A program for a cluster of this machine: which GPUs tasks are granted. Prints JSON.

``python -m tests.spark_glue.granted TASKS DISCOVERY_SCRIPT``
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyspark
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import gpu_windows as gw

PARTITIONS = 8


def main(tasks: int, script: str) -> None:
    """Run tasks that tell what they were granted, then two queries."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    settings: dict[str, bool | float | int | str | None] = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.cores": "2",
        "spark.executor.memory": "1g",
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "spark.log.level": "OFF",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.worker.resource.gpu.amount": "2",
        "spark.worker.resource.gpu.discoveryScript": script,
    }
    # one worker with two GPUs; two executors with one each, and two tasks at a time
    builder = gw.configure(SparkSession.builder.master("local-cluster[1,4,2048]"), gpu=tasks)
    spark = builder.config(map=settings).getOrCreate()
    while len(_granted(spark)) < 2:
        pass  # the second executor is not there yet
    rows = spark.range(0, PARTITIONS, 1, PARTITIONS).mapInPandas(_tell, _SCHEMA).collect()
    found = {
        "tasks": [row.asDict() for row in rows],
        "results": [row.total for row in _query(spark, "auto").orderBy("window_start").collect()],
        "error": _error(spark),
    }
    spark.stop()
    sys.stdout.write(json.dumps(found) + "\n")


_SCHEMA = "address string, begin double, end double"


def _tell(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    context: Any = TaskContext.get()
    begin = time.time()
    time.sleep(0.5)
    for _ in batches:
        pass
    addresses = ",".join(context.resources()["gpu"].addresses)
    yield pd.DataFrame({"address": [addresses], "begin": [begin], "end": [time.time()]})


def _granted(spark: SparkSession) -> set[str]:
    rows = spark.range(0, 4, 1, 4).mapInPandas(_tell, _SCHEMA).collect()
    return {row.address for row in rows}


def _query(spark: SparkSession, device: Any) -> Any:
    rows = spark.range(0, 100, 1, 4).selectExpr("timestamp_seconds(id) AS ts", "id AS v")
    stream = gw.stream(rows).event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    windowed = stream.window_all(gw.TumblingEventTimeWindows.of("25 seconds"))
    options = windowed.options(device=device, partials="kernels")
    return options.aggregate(total=gw.sum("v")).selectExpr("window_start", "total")


def _error(spark: SparkSession) -> str:
    try:
        return f"no error: {_query(spark, 'cuda').collect()}"
    except PySparkException as error:
        return str(error)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
