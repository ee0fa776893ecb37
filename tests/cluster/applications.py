"""How applications of the tests are set on a cluster, and what Spark tells of them afterwards."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.cluster.standalone import HOST, JAVA, Cluster

#: Speculation of nearly everything, and executors that come and go.
RESTLESS = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.executorIdleTimeout": "4s",
    "spark.dynamicAllocation.initialExecutors": "2",
    "spark.dynamicAllocation.maxExecutors": "3",
    "spark.dynamicAllocation.minExecutors": "1",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.timeout": "10s",
    "spark.sql.adaptive.enabled": "true",
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.minTaskRuntime": "50ms",
    "spark.speculation.multiplier": "1.01",
    "spark.speculation.quantile": "0.25",
}
_PLAIN = {
    "spark.driver.bindAddress": HOST,
    "spark.driver.host": HOST,
    "spark.driver.extraJavaOptions": JAVA,
    "spark.driver.memory": "1g",
    "spark.eventLog.compress": "false",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.rolling.enabled": "false",
    "spark.executor.cores": "1",
    "spark.executor.extraJavaOptions": JAVA,
    "spark.executor.memory": "768m",
    "spark.log.level": "WARN",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
    "spark.task.maxFailures": "100",  # executors are killed on purpose
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
#: Where the workers have this checkout, as on a cluster of which all nodes share it.
SHARED = {"spark.executorEnv.PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def settings(
    cluster: Cluster, events: Path, more: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the settings of an application whose events are told below a folder."""
    events.mkdir(parents=True, exist_ok=True)
    where = {"spark.master": cluster.url, "spark.eventLog.dir": events.resolve().as_uri()}
    return {**_PLAIN, **where, **(more or {})}


def told(events: Path) -> Iterator[dict[str, Any]]:
    """Yield the events of all applications."""
    for path in sorted(events.iterdir()):
        for line in path.read_text().splitlines():
            if line.endswith("}"):  # the last one of an application that was killed may be cut
                yield json.loads(line)


def counted(events: Path) -> Counter[str]:
    """Count what Spark has seen: executors that came and went, tasks, lost and speculative ones."""
    found: Counter[str] = Counter()
    for event in told(events):
        kind = event["Event"].removeprefix("SparkListener")
        if kind in ("ExecutorAdded", "ExecutorRemoved"):
            found[kind] += 1
        elif kind == "TaskEnd":
            found["tasks"] += 1
            found["speculative"] += event["Task Info"]["Speculative"]
            found["of lost executors"] += (
                event["Task End Reason"]["Reason"] == "ExecutorLostFailure"
            )
            found["fetches that failed"] += event["Task End Reason"]["Reason"] == "FetchFailed"
    return found
