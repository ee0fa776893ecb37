"""One run of one benchmark: prepare, check, time, report."""

from __future__ import annotations

import os

from benchmarks import machine
from benchmarks.contest import Benchmark, Window
from benchmarks.measure import Tell, check, race, warm_up
from benchmarks.report import Report
from benchmarks.stage import Resources, Stage

#: A load average of this share of the cores means that others are at work.
BUSY = 0.5


def run(
    benchmark: Benchmark,
    resources: Resources,
    window: Window,
    *,
    peers: tuple[str, ...],
    without: tuple[str, ...] = (),
    only: tuple[str, ...] = (),
    repeats: int | None = None,
    tell: Tell = lambda _: None,
) -> Report:
    """Check and time the contestants of one benchmark.

    Parameters
    ----------
    benchmark : Benchmark
    resources : Resources
        The data and the session.
    window : Window
        The windows of all contestants that do not choose their own.
    peers, without, only : tuple of str
        See `Benchmark.chosen`.
    repeats : int, optional
        Runs that count; by default the benchmark's own number.
    tell : callable
        Is told what is going on.

    Raises
    ------
    ResultMismatchError
        If two contestants do not agree; then there is no report.
    """
    chosen = benchmark.chosen(peers, without, only)
    if not chosen:
        message = f"{benchmark.name} has no contestant left"
        raise ValueError(message)
    load = machine.load()
    tell("preparing the data")
    stage = Stage(resources, window)
    works = {name: factory(stage) for name, factory in chosen.items()}
    if not benchmark.checks_runs:
        check(works, tell)
    warm_up(works, benchmark.warm_seconds, tell)
    measurements = race(
        works,
        warmups=benchmark.warmups,
        repeats=repeats or benchmark.repeats,
        in_a_row=benchmark.in_a_row,
        tell=tell,
    )
    if benchmark.checks_runs:
        check(works, tell)
    return Report(
        benchmark.name,
        benchmark.about,
        resources.data_set,
        tuple(measurements),
        notes=(*benchmark.summary(measurements), *_busy(load)),
        load=load,
        columns=benchmark.columns,
    )


def _busy(load: float) -> tuple[str, ...]:
    cores = os.cpu_count() or 1
    if load < BUSY * cores:
        return ()
    return (f"the load was {load} on {cores} cores before it began: do not trust these times",)
