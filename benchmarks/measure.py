"""Checking contestants against each other, then timing them in turns."""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass

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
    """

    contestant: str
    window: Window
    runs: tuple[float, ...]
    floor: bool = False

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


def race(works: Mapping[str, Work], *, warmups: int, repeats: int, tell: Tell) -> list[Measurement]:
    """Time contestants in turns, so that a slow minute of the machine meets all of them."""
    runs: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(-warmups, repeats):
        for name, work in works.items():
            tell(f"{name}: " + ("warm-up" if turn < 0 else f"run {turn + 1} of {repeats}"))
            gc.collect()
            seconds = work.measure()
            if turn >= 0:
                runs[name].append(seconds)
    return [
        Measurement(name, work.window, tuple(runs[name]), floor=work.floor)
        for name, work in works.items()
    ]
