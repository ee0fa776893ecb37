"""Checking contestants against each other, then timing them in turns."""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from benchmarks.contest import Window, Work
from benchmarks.equality import require_equal

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Measurement:
    """What one contestant took.

    Parameters
    ----------
    contestant : str
    window : Window
    runs : tuple of float
        Seconds of each run that counts, in order.
    floor : bool
        Whether it computes nothing and only shows what cannot be undercut.
    details : mapping of str to object
        What else was measured, as JSON can hold it.
    """

    contestant: str
    window: Window
    runs: tuple[float, ...]
    floor: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def median(self) -> float:
        """Median of the runs, in seconds."""
        return statistics.median(self.runs)


def check(works: Mapping[str, Work], tell: Tell) -> None:
    """Require that contestants with equal windows have equal results.

    The first one with a result is what the others are compared with.

    Raises
    ------
    ResultMismatchError
        If two of them differ.
    """
    expected: dict[Window, tuple[str, pa.Table]] = {}
    for name, work in works.items():
        if work.result is None:
            continue
        tell(f"checking {name}")
        result = work.result()
        if work.window in expected:
            first, table = expected[work.window]
            require_equal(table, result, (first, name))
        else:
            expected[work.window] = (name, result)


def warm_up(works: Mapping[str, Work], seconds: float, tell: Tell) -> None:
    """Have every contestant that can do so work for some seconds."""
    for name, work in works.items():
        if work.warm is not None and seconds > 0:
            tell(f"{name}: {seconds:g} s of warm-up")
            work.warm(seconds)


def race(
    works: Mapping[str, Work], *, warmups: int, repeats: int, in_a_row: int = 1, tell: Tell
) -> list[Measurement]:
    """Time contestants in turns, so that a slow minute of the machine meets all of them.

    Parameters
    ----------
    works : mapping of str to Work
    warmups, repeats : int
        Runs before those that count, and those.
    in_a_row : int
        Runs that count in one turn. Where that is more than one, a turn begins with one that does
        not count, since what rests grows cold.
    tell : callable
    """
    runs: dict[str, list[float]] = {name: [] for name in works}
    counted: list[int] = []
    made = 0
    for cold, warm in turns(warmups, repeats, in_a_row):
        for name, work in works.items():
            for place in range(cold + warm):
                done = len(runs[name]) + 1
                tell(f"{name}: " + ("warm-up" if place < cold else f"run {done} of {repeats}"))
                gc.collect()
                seconds = work.measure()
                if place >= cold:
                    runs[name].append(seconds)
        counted += range(made + cold, made + cold + warm)
        made += cold + warm
    return [
        Measurement(name, work.window, tuple(runs[name]), work.floor, work.details(counted))
        for name, work in works.items()
    ]


def turns(warmups: int, repeats: int, in_a_row: int) -> Iterator[tuple[int, int]]:
    """Yield the runs of a contestant in each of its turns: those that do not count, and the others.

    The warm-ups of runs one at a time are turns of their own, else they begin the first one.
    """
    if in_a_row == 1:
        yield from [(1, 0)] * warmups + [(0, 1)] * repeats
        return
    for done in range(0, repeats, in_a_row):
        yield (max(warmups, 1) if done == 0 else 1), min(in_a_row, repeats - done)
