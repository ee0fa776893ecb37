"""Contestants at a steady rate, and whether what they take stays the same."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from benchmarks.contest import Factory, Work
from benchmarks.engines.streams import OurQuery
from benchmarks.measure import Measurement
from benchmarks.stage import Stage
from benchmarks.streams import Feed, data_of

#: Growth from the second third of the time to the last that still counts as none.
FLAT = 0.1
#: Figures of the series that should stay the same.
FIGURES = ("state_rows", "live_bytes", "jvm_bytes", "worker_bytes")


class Pace:
    """Lets a call begin when its time has come.

    Parameters
    ----------
    period : float
        Seconds from the begin of a call to that of the next, unless that takes longer.
    """

    def __init__(self, period: float) -> None:
        self._period = period
        self._due: float | None = None

    def wait(self) -> None:
        """Sleep until it is time."""
        now = time.monotonic()
        if self._due is not None and self._due > now:
            time.sleep(self._due - now)
        self._due = max(now, self._due or now) + self._period


def steady(query: OurQuery, period: float) -> Factory:
    """Make a contestant of a query of ours that is given a micro-batch every ``period``."""

    def factory(stage: Stage) -> Work:
        feed, pace = Feed(stage, query, *data_of(stage).inputs), Pace(period)

        def measure() -> float:
            pace.wait()
            return feed.next()

        return Work(measure, stage.window, details=partial(_details, feed))

    return factory


def _details(feed: Feed, runs: Sequence[int]) -> dict[str, Any]:
    """Return every figure as a list, a value a micro-batch, and what keeps the state."""
    counted = [feed.history[run] for run in runs]
    return {
        "state_in": feed.query.state_in,
        "at": [each.at for each in counted],
        "seconds": [each.seconds for each in counted],
        "state_rows": [each.state.entries for each in counted],
        "state_bytes": [each.state.held_bytes for each in counted],
        "live_bytes": [each.state.live_bytes for each in counted],
        "jvm_bytes": [each.resident["jvm"] for each in counted],
        "worker_bytes": [each.resident["workers"] for each in counted],
    }


def growth(values: Sequence[float]) -> float | None:
    """Return the growth from the second third to the last, of medians; None of too few values."""
    third = len(values) // 3
    if third == 0:
        return None
    middle, last = values[third : 2 * third], values[2 * third :]
    return statistics.median(last) / statistics.median(middle) - 1


def flatness(measurements: Sequence[Measurement]) -> list[str]:
    """Say of every contestant and figure whether it stayed the same."""
    lines = []
    for m in measurements:
        for name in FIGURES:
            values = m.details[name]
            if not any(values):
                continue  # nobody counts it
            grown = growth(values)
            lines.append(
                f"{m.contestant}: {name} {values[0]:,} at first, {values[-1]:,} at last, "
                f"at most {max(values):,}: {_words(grown)}"
            )
        both = zip(m.details["state_bytes"], m.details["live_bytes"], strict=True)
        ratios = [held / live for held, live in both if live]
        if ratios:
            what = "state files had" if m.details.get("state_in") == "files" else "RocksDB held"
            lines.append(f"{m.contestant}: {what} at most {max(ratios):.1f} times the live bytes")
    return lines


def _words(grown: float | None) -> str:
    if grown is None:
        return "too short to tell"
    verdict = "flat" if grown <= FLAT else "GROWS"
    return f"{verdict} ({grown:+.1%} from the second third to the last)"
