"""Runs `tests.chaos.driver`, kills it or its workers, and compares what was written."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import psutil
import pyarrow.parquet as pq

from gpu_windows.commits.path_log import NOTHING, PathLog
from tests.chaos.driver import BROADCAST, CHECKPOINTS, PROCESS, SCRIPT, SECOND, STAGES
from tests.spark_glue.stream_runs import batches, files

Victim = Literal["driver", "worker"]

#: The further outputs of queries that have some.
_FURTHER = {
    PROCESS: ("sides/odd", "sides/timers"),
    BROADCAST: ("sides/told",),
    SCRIPT: (SECOND,),
    STAGES: ("stages/sliding/result", "stages/sliding/late", "stages/again/result"),
}

#: The program that runs a query.
DRIVER = "tests.chaos.driver"
#: Seconds that a run may take.
_LIMIT = 300


@dataclass(frozen=True)
class Death:
    """What became of a run that was killed.

    Parameters
    ----------
    victim : {"driver", "worker"}
    after : float
        Seconds from the start to the kill.
    committed : int
        Micro-batches that were complete by then.
    recovery : float
        Seconds from then to the next complete micro-batch: for a driver from its next start.
    """

    victim: Victim
    after: float
    committed: int
    recovery: float


def prepare(folder: Path, count: int, rows: int) -> None:
    """Write the input of a query, a file a micro-batch."""
    folder.mkdir(parents=True)
    files(folder / "in", batches(count, rows))


def fresh(folder: Path, like: Path) -> Path:
    """Return a folder with the same input and nothing else."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "in").symlink_to(like / "in")
    return folder


class Run:
    """A run of the driver in a process group of its own.

    ``settings``: of Spark, besides the driver's; ``driver``: the program that runs it; ``shards``:
    of its query.
    """

    def __init__(
        self,
        query: str,
        folder: Path,
        settings: Mapping[str, str] | None = None,
        *,
        driver: str = DRIVER,
        shards: int = 3,
    ) -> None:
        command = [sys.executable, "-m", driver, query, str(folder)]
        command += ["--settings", json.dumps(settings)] if settings else []
        self._folder = folder
        self._checkpoint = folder / CHECKPOINTS.get(query, "checkpoint")
        self._known = self._planned
        with (folder / "log").open("ab") as log:
            self._process = psutil.Popen(
                command,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, "CHAOS_SHARDS": str(shards)},
            )
        self.began = time.monotonic()

    @property
    def seconds(self) -> float:
        """How long it has been running."""
        return time.monotonic() - self.began

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    @property
    def has_begun(self) -> bool:
        """Whether a micro-batch has been planned: Spark itself is up, which takes a while."""
        return self._planned > 0

    @property
    def goes_on(self) -> bool:
        """Whether it has planned a micro-batch, or done one again, since it began."""
        return self._planned > self._known

    @property
    def _planned(self) -> int:
        return len([*(self._checkpoint / "offsets").glob("[0-9]*")])

    @property
    def committed(self) -> int:
        """How many micro-batches are complete, those of runs before too."""
        return len([*(self._checkpoint / "commits").glob("[0-9]*")])

    @property
    def last_commit(self) -> float:
        """When the last micro-batch was complete, in seconds since 1970."""
        commits = (self._checkpoint / "commits").glob("[0-9]*")
        return max(path.stat().st_mtime for path in commits)

    def until_next_commit(self) -> float:
        """Wait until a further micro-batch is complete, or all are; return the seconds."""
        began, known = time.monotonic(), self.committed
        while self.is_running and self.committed == known:
            time.sleep(0.01)
        return time.monotonic() - began

    def finish(self) -> None:
        """Wait for the end, which must be a good one."""
        if self._process.wait(_LIMIT) != 0:
            raise AssertionError((self._folder / "log").read_text(errors="replace")[-5_000:])

    def kill(self, victim: Victim, rng: random.Random) -> bool:
        """Kill the driver with its JVM, or one Python worker; return whether it was there."""
        if victim == "driver":
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            return True
        workers = [p for p in self._process.children(recursive=True) if _is_worker(p)]
        if not workers:
            return False
        rng.choice(workers).kill()
        return True


def _is_worker(process: psutil.Process) -> bool:
    """Whether a process is a fork of PySpark's daemon, and not the daemon itself."""
    try:
        parent = process.parent()
        return all("pyspark.daemon" in p.cmdline() for p in (process, parent) if p is not None)
    except psutil.Error:
        return False


def run_with_death(
    query: str,
    folder: Path,
    victim: Victim,
    seconds: float,
    rng: random.Random,
    *,
    driver: str = DRIVER,
) -> Death | None:
    """Run the driver, kill it or a worker at a random moment, and have it finish.

    ``seconds``: how long micro-batches run in an undisturbed run. One run in ten is killed while it
    starts, if there is a victim. None: it ended before there was one.
    """
    run = Run(query, folder, driver=driver)
    waits = rng.random() > 0.1
    at = rng.uniform(0.0, 0.9) * seconds
    while waits and run.is_running and not run.has_begun:
        time.sleep(0.01)
    begun = run.seconds if waits else 0.0
    while run.is_running:
        if run.seconds - begun >= at and run.kill(victim, rng):
            after, committed = run.seconds, run.committed
            if victim == "driver":
                run = Run(query, folder, driver=driver, shards=rng.choice([2, 3, 4, 6]))
            recovery = run.until_next_commit()
            run.finish()
            return Death(victim, round(after, 2), committed, round(recovery, 2))
        time.sleep(0.01)
    run.finish()
    return None


def undisturbed(query: str, folder: Path, *, driver: str = DRIVER) -> float:
    """Run the driver to its end; return the seconds in which micro-batches ran."""
    run = Run(query, folder, driver=driver)
    while run.is_running and not run.has_begun:
        time.sleep(0.01)
    begun = time.time()
    run.finish()
    return run.last_commit - begun


def is_planned_alike(folder: Path, whole: Path) -> bool:
    """Whether Spark planned the same micro-batches in a run as in another one.

    Spark notes which files it has seen before it notes a micro-batch of them. After a death between
    the two it takes the next file too, so a micro-batch has the rows of two.
    """
    return _planned(folder) == _planned(whole)


def _planned(folder: Path) -> dict[str, list[str]]:
    """Return the offsets of each micro-batch, without the version and the time of planning."""
    offsets = (folder / "checkpoint" / "offsets").glob("[0-9]*")
    return {path.name: path.read_text().splitlines()[2:] for path in offsets}


def differences(folder: Path, whole: Path, query: str) -> list[str]:
    """Return the rows in which two runs differ, with what they are of and ``more`` or ``less``."""
    found = []
    for kind in kinds_of(query):
        here, there = (Counter(map(repr, rows_written(f, kind))) for f in (folder, whole))
        found += [f"{kind}, more: {row}" for row in here - there]
        found += [f"{kind}, less: {row}" for row in there - here]
    return found


def kinds_of(query: str) -> tuple[str, ...]:
    """Return the kinds of rows that a query writes."""
    return "result", "late", *_FURTHER.get(query, ())


def rows_written(folder: Path, kind: str) -> list[tuple[Any, ...]]:
    """Return all rows that were written, with the number of their micro-batch, in some order."""
    found = []
    place = folder / "out"
    if kind == SECOND:
        place, kind = folder / SECOND, "result"
    for path in (folder / "out" / kind).glob("batch=*"):  # of a function
        rows = pq.read_table(path).to_pylist()
        found += [(path.name, *row.values()) for row in rows]
    for commit in PathLog(place.resolve().as_uri()).between(NOTHING):
        if kind in commit.outputs:
            rows = pq.read_table(place / commit.outputs[kind].folder).to_pylist()
            assert len(rows) == commit.outputs[kind].rows
            found += [(commit.number, *row.values()) for row in rows]
    return sorted(found, key=repr)
