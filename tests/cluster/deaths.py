"""Runs queries on a cluster, kills executors and workers meanwhile, and counts rows that differ."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import pyarrow.parquet as pq

from tests.chaos.harness import Run, fresh, kinds_of, prepare, rows_written, undisturbed
from tests.cluster.applications import RESTLESS, SHARED, counted, settings
from tests.cluster.batch import BatchRun, wanted
from tests.cluster.standalone import Cluster
from tests.planning.queries import rounded, rows_of

Victim = Literal["executor", "worker"]
#: Seconds from one death to the next: executors are there again after five.
_BETWEEN = (2.0, 9.0)


class Disturbed(Protocol):
    """A run whose executors may be killed."""

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""

    @property
    def committed(self) -> int:
        """How much is complete: micro-batches, or queries."""

    def until_next_commit(self) -> float:
        """Wait until more is complete, or all is; return the seconds."""

    def finish(self) -> None:
        """Wait for the end."""


@dataclass
class Outcome:
    """What became of runs in which executors and workers were killed.

    Parameters
    ----------
    runs : int
    deaths : dict of str to int
        By victim.
    recoveries : list of float
        Seconds from a death to the next complete micro-batch or query.
    rows, lost, more : int
        Rows that were wanted; of them those that are missing; and those that are there too often,
        or should not be.
    seen : Counter
        What Spark saw: see `tests.cluster.applications.counted`.
    """

    runs: int = 0
    deaths: Counter[str] = field(default_factory=Counter)
    recoveries: list[float] = field(default_factory=list)
    rows: int = 0
    lost: int = 0
    more: int = 0
    seen: Counter[str] = field(default_factory=Counter)

    def add(self, other: Outcome) -> None:
        """Add what became of other runs."""
        self.runs += other.runs
        self.deaths += other.deaths
        self.recoveries += other.recoveries
        self.rows += other.rows
        self.lost += other.lost
        self.more += other.more
        self.seen += other.seen

    def compare(self, wanted: Iterable[tuple[Any, ...]], found: Iterable[tuple[Any, ...]]) -> None:
        """Count rows that differ."""
        ours, theirs = Counter(wanted), Counter(found)
        self.rows += ours.total()
        self.lost += (ours - theirs).total()
        self.more += (theirs - ours).total()


def disturb(
    run: Disturbed, cluster: Cluster, victims: list[Victim], rng: random.Random, outcome: Outcome
) -> None:
    """Kill victims, which leave the list, until none is left or the run has ended."""
    while run.is_running and not run.committed:
        time.sleep(0.02)
    while victims:
        _sleep(run, rng.uniform(*_BETWEEN))
        kill = cluster.kill_executor if victims[0] == "executor" else cluster.kill_worker
        while run.is_running and not kill(rng):
            time.sleep(0.05)
        if not run.is_running:
            break
        outcome.deaths[victims.pop(0)] += 1
        outcome.recoveries.append(run.until_next_commit())
    run.finish()


def _sleep(run: Disturbed, seconds: float) -> None:
    end = time.monotonic() + seconds
    while run.is_running and time.monotonic() < end:
        time.sleep(0.02)


def stream(
    cluster: Cluster, query: str, whole: Path, victims: list[Victim], rng: random.Random
) -> Outcome:
    """Run a streaming query with deaths; ``whole``: where one has run without."""
    outcome = Outcome(runs=1)
    folder = fresh(whole.parent / f"{whole.name}-killed", whole)
    events = folder / "events"
    run = Run(query, folder, settings(cluster, events, {**RESTLESS, **SHARED, **PARTITIONS}))
    disturb(run, cluster, victims, rng, outcome)
    for kind in kinds_of(query):
        found = (rounded(rows_written(each, kind)) for each in (whole, folder))
        outcome.compare(*found)
    outcome.seen = counted(events)
    return outcome


#: As the chaos driver has it: so many shards has a query that does not say how many.
PARTITIONS = {"spark.sql.shuffle.partitions": "2"}


def undisturbed_stream(query: str, folder: Path, batches: int, rows: int) -> Path:
    """Run a streaming query on this machine alone; return its folder."""
    prepare(folder, batches, rows)
    undisturbed(query, folder)
    return folder


def batch(
    cluster: Cluster, folder: Path, queries: str, victims: list[Victim], rng: random.Random
) -> Outcome:
    """Run batch queries again and again, with deaths, over the rows of a folder."""
    outcome = Outcome(runs=1)
    events = folder / "events"
    run = BatchRun(folder, settings(cluster, events, {**RESTLESS, **SHARED}), 1_000, queries)
    disturb(run, cluster, victims, rng, outcome)
    ours = {name: wanted(folder, name) for name in queries.split(",")}
    for path in run.results():
        outcome.compare(ours[path.stem.partition("-")[2]], rows_of(pq.read_table(path)))
    outcome.seen = counted(events)
    return outcome
