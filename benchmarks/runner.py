"""One run of one benchmark: prepare, check, time, report."""

from __future__ import annotations

import os

from benchmarks import machine
from benchmarks.contest import Benchmark, Window
from benchmarks.measure import Tell, check, race
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
    repeats: int = 3,
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
    peers, without : tuple of str
        See `Benchmark.chosen`.
    repeats : int
        Runs that count.
    tell : callable
        Is told what is going on.

    Raises
    ------
    ResultMismatchError
        If two contestants do not agree; nothing is timed then.
    """
    chosen = benchmark.chosen(peers, without)
    if not chosen:
        message = f"{benchmark.name} has no contestant left"
        raise ValueError(message)
    load = machine.load()
    tell("preparing the data")
    stage = Stage(resources, window)
    works = {name: factory(stage) for name, factory in chosen.items()}
    check(works, tell)
    measurements = race(works, warmups=benchmark.warmups, repeats=repeats, tell=tell)
    return Report(
        benchmark.name,
        benchmark.about,
        resources.data_set,
        tuple(measurements),
        notes=(*benchmark.summary(measurements), *_busy(load)),
        load=load,
    )


def _busy(load: float) -> tuple[str, ...]:
    cores = os.cpu_count() or 1
    if load < BUSY * cores:
        return ()
    return (f"the load was {load} on {cores} cores before it began: do not trust these times",)
