"""What a micro-batch reads from and writes to state files as state grows: one shard, no Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.contest import Benchmark, Factory, Work
from benchmarks.shard_data import PATTERNS, ShardData
from benchmarks.shard_figures import Course, columns, verdicts
from benchmarks.shard_queries import QUERIES, ShardQuery
from benchmarks.shard_work import ShardWork
from benchmarks.stage import Stage
from gpu_windows.operators.state.frames import pack_table

#: Has kernels compiled and loaded before anything is measured.
_REHEARSAL = ShardData(rows=2, keys=4, batches=2)


def _contestant(query: ShardQuery, pattern: str) -> Factory:
    def factory(stage: Stage) -> Work:
        data = stage.resources.data_set
        assert isinstance(data, ShardData)
        courses: list[Course] = []

        def measure() -> float:
            """Return the mean of the processor seconds of a micro-batch."""
            _course(query, _REHEARSAL, pattern, stage.resources.scratch())
            courses.append(_course(query, data, pattern, stage.resources.scratch()))
            return courses[-1].cpu_s

        def details(_: object) -> dict[str, object]:
            course = courses[-1]
            checks = course.checks(mergeable=query.mergeable, flat=query.is_flat)
            return {**course.details(), "checks": [check.row() for check in checks]}

        return Work(measure, query.window, details=details)

    return factory


def _course(query: ShardQuery, data: ShardData, pattern: str, folder: Path) -> Course:
    """Fill the state of a shard, touch it, and let time end."""
    work = ShardWork(query.plan, folder)
    fill = work.micro_batch(query.filled(data.fill()))
    costs = []
    for index in range(1, data.count(pattern, query.times) + 1):
        rows = data.micro_batch(pattern, index)
        cost = work.micro_batch(query.given(rows))
        touched = len(pack_table(query.entries(rows.sort_by("key"))))
        costs.append(replace(cost, touched_keys=len(rows), touched_bytes=touched))
    live, files = work.live_bytes, work.file_bytes
    return Course(fill, costs, work.end(), live, files)


BENCHMARK = Benchmark(
    name="stream_growth",
    about="bytes that a micro-batch reads from and writes to the state files of a shard with "
    "--keys keys, --rows of them touched (at random, the same ones, or all); no Spark; seconds are "
    "of the processor, means of a micro-batch",
    size="1 hour",
    contestants={
        f"gpu_windows[{name} {pattern}]": _contestant(query, pattern)
        for name, query in QUERIES.items()
        for pattern in PATTERNS
    },
    rows=100,
    keys=100_000,
    warmups=0,
    repeats=1,
    summary=verdicts,
    columns=columns,
    data=ShardData,
)
