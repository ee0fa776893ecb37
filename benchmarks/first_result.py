"""A process of its own that measures the first result of a fresh Spark session.

Run by the benchmark ``cold``: ``python -m benchmarks.first_result`` with the parameters as one
JSON argument; the last line that it writes is the answer.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from benchmarks.contest import Window
from benchmarks.data import DataSet
from benchmarks.stage import Resources, Stage

#: Seconds after which a process that has not answered is ended.
LIMIT = 300.0


def measure(stage: Stage, contestant: str, variables: Mapping[str, str]) -> float:
    """Return the seconds from a ready session to the result, in a new process.

    Parameters
    ----------
    stage : Stage
        The data and the windows.
    contestant : str
        One of the benchmark ``tumbling``.
    variables : mapping of str to str
        Environment variables of the process and its workers.
    """
    stage.resources.data_set.ensure(stage.resources.root)
    parameters = {
        "contestant": contestant,
        "data_set": asdict(stage.resources.data_set),
        "root": str(stage.resources.root),
        "window": asdict(stage.window),
    }
    code = str(Path(__file__).parent.parent)
    path = os.pathsep.join(filter(None, (code, os.environ.get("PYTHONPATH"))))
    finished = subprocess.run(
        [sys.executable, "-m", "benchmarks.first_result", json.dumps(parameters)],
        env={**os.environ, "PYTHONPATH": path, **variables},
        stdout=subprocess.PIPE,
        text=True,
        timeout=LIMIT,
        check=True,
    )
    return float(finished.stdout.splitlines()[-1])


def main(argument: str) -> None:
    """Start a session, then time the contestant's first run in it."""
    from benchmarks.suite.tumbling import BENCHMARK

    parameters = json.loads(argument)
    data_set = DataSet(**parameters["data_set"])
    with Resources(data_set, Path(parameters["root"])) as resources:
        stage = Stage(resources, Window(**parameters["window"]))
        work = BENCHMARK.contestants[parameters["contestant"]](stage)
        sys.stdout.write(f"{work.measure()}\n")


if __name__ == "__main__":
    main(sys.argv[1])
