"""What the streaming demo shows: results so far while it runs, and a summary at the end."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
from rich import box
from rich.console import Console, RenderableType
from rich.panel import Panel
from rich.table import Table

from examples.flights.early import Check, Early
from gpu_windows.commits.path_log import NOTHING, PathLog
from gpu_windows.commits.records import RESULT
from gpu_windows.monitoring.progress import QueryMetrics

#: Airlines shown, and the departures that one needs to be shown.
_SHOWN, _ENOUGH = 8, 50
_KEYS = ["origin", "carrier", "window_start"]


class Board:
    """What rich draws of the results that are there: the most delayed of the latest window.

    Parameters
    ----------
    folder : Path
        Where a query writes.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._log = PathLog(folder.resolve().as_uri())
        self._seen = NOTHING
        self._latest = pd.DataFrame()

    def __rich__(self) -> RenderableType:
        self._take()
        return _board(self._latest) if len(self._latest) else ""

    def _take(self) -> None:
        """Read what has been written since."""
        for commit in self._log.between(self._seen):
            self._seen = commit.position
            if RESULT in commit.outputs:
                rows = pq.read_table(self._folder / commit.outputs[RESULT].folder)
                new = rows.to_pandas().sort_values("firing")
                both = pd.concat([self._latest, new], ignore_index=True)
                self._latest = both.drop_duplicates(_KEYS, keep="last")


def _board(latest: pd.DataFrame) -> Table:
    start = latest["window_start"].max()
    window = latest[latest["window_start"] == start]
    shown = window[window["departures"] >= _ENOUGH].nlargest(_SHOWN, "mean_delay")
    title = f"Most delayed, {_dates(start, window['window_end'].iloc[0])} (delays in minutes)"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for name in ("Airport", "Airline", "Result"):
        table.add_column(name, no_wrap=True)
    for name in ("Flights", "Mean", "Max"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in shown.to_dict("records"):
        result = f"early, {row['firing'] + 1}." if row["timing"] == "early" else "final"
        numbers = (f"{row['departures']:,}", f"{row['mean_delay']:.1f}", f"{row['max_delay']:.0f}")
        table.add_row(row["origin"], row["carrier"], result, *numbers)
    return table


def _dates(start: pd.Timestamp, end: pd.Timestamp) -> str:
    return f"{start:%-d %b}–{end - pd.Timedelta(days=1):%-d %b %Y} (UTC)"


def describe(console: Console, rows: int, weeks: int) -> None:
    """Say what is replayed and computed."""
    lines = (
        "[bold]Departures, mean and maximal delay per airport and airline in windows of 4 weeks "
        "with an early result every week[/bold]",
        f"{rows:,} flights that left New York in 2013, as they might have been reported: within "
        "minutes or hours, a few within weeks. Departures are real, times of reports are made up.",
        f"A micro-batch holds the reports of a week; there are {weeks}. The watermark is a day "
        "behind the latest departure: who reports a flight of a window that is over is late.",
        "The first micro-batch takes longer: kernels are compiled, once on a machine.",
    )
    title = "The streaming demo"
    console.print(Panel("\n".join(lines), title=title, title_align="left", padding=(1, 2)))


@dataclass(frozen=True)
class Summary:
    """What came of a run.

    Parameters
    ----------
    metrics : QueryMetrics
    seconds : float
        From the start of the query to its end.
    timings : dict of str to int
        Firings by timing, ``early`` and ``on_time``.
    early : list of Early
    check : Check
    late : Path
        Where late rows are.
    """

    metrics: QueryMetrics
    seconds: float
    timings: dict[str, int]
    early: list[Early]
    check: Check
    late: Path


def show(console: Console, summary: Summary) -> None:
    """Show a summary."""
    counters, check = summary.metrics.counters, summary.check
    rate = counters.rows / summary.seconds
    lines = (
        ("rows in", f"{counters.rows:,} in {summary.seconds:.1f} s, {rate:,.0f} a second"),
        ("never departed", f"{counters.null_timestamp:,} without an event time, given back"),
        ("late", f"{counters.late:,}, given back"),
        ("early results", f"{summary.timings.get('early', 0):,}"),
        ("final results", f"{summary.timings.get('on_time', 0):,}"),
        ("windows still open", f"{check.open:,}"),
        ("equal to batch", f"{check.same:,} of {check.complete:,} windows that had no late row"),
        ("short of late rows", f"{check.short:,} of {check.touched:,} windows that had some"),
    )
    table = Table(title="Summary", title_justify="left", show_header=False, box=None)
    for line in lines:
        table.add_row(*line)
    console.print(table)
    if summary.early:
        console.print(_early(summary.early))
    console.print(f"Late rows: [bold]{summary.late.resolve()}[/bold]", soft_wrap=True)


def _early(early: list[Early]) -> Table:
    title = "What early results knew of the final ones (medians)"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for name in ("Result", "Windows", "Flights known", "Mean delay off by"):
        table.add_column(name, justify="right")
    for each in early:
        share, error = f"{each.share:.0%}", f"{each.error:.1f} min"
        table.add_row(f"{each.number}.", f"{each.windows:,}", share, error)
    return table
