"""A stream that goes on with another number of executors than it began with."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path

from tests.chaos.harness import Run, fresh, kinds_of, rows_written
from tests.cluster.applications import SHARED, counted, settings
from tests.cluster.deaths import PARTITIONS, Outcome
from tests.cluster.standalone import Cluster
from tests.planning.queries import rounded


def scaled(
    cluster: Cluster, query: str, whole: Path, executors: tuple[int, ...], seed: int = 0
) -> Outcome:
    """Kill the driver and start it with other numbers of executors; ``whole``: an undisturbed run.

    The first numbers each have their share of the micro-batches, the last one has what is left.
    """
    folder, outcome = fresh(whole.parent / f"{whole.name}-scaled", whole), Outcome(runs=1)
    share = len([*(whole / "checkpoint" / "commits").glob("[0-9]*")]) // len(executors)
    for number, count in enumerate(executors):
        events = folder / f"events-{number}"
        more = {**SHARED, **PARTITIONS, "spark.cores.max": str(count)}
        run = Run(query, folder, settings(cluster, events, more))
        if number + 1 == len(executors):
            run.finish()
        else:
            while run.is_running and run.committed < share * (number + 1):
                time.sleep(0.02)
            assert run.is_running
            run.kill("driver", random.Random(seed))
        outcome.seen[f"executors of start {number}"] = counted(events)["ExecutorAdded"]
    for kind in kinds_of(query):
        found = (rows_written(each, kind) for each in (whole, folder))
        outcome.compare(*map(rounded, found))
    return outcome


def shards(folder: Path) -> list[int]:
    """Return the numbers of the shards that a checkpoint knows, as `gpu-windows state` tells."""
    asked = ("state", str(folder / "checkpoint"), "--json", "--details")
    command = [sys.executable, "-m", "gpu_windows.cli", *asked]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return sorted(shard["shard"] for shard in json.loads(run.stdout)["shards"])
