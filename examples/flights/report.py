"""What the demo writes on the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
from rich import box
from rich.console import Console
from rich.panel import Panel
from rich.table import Table

from examples.flights.flights import AIRPORTS, ZONE, Facts
from examples.flights.two_streams import Answer

#: Windows shown for each airport in each part of the table.
SHOWN = 3
#: Departures that a window needs to be among the most delayed: one late flight is no trend.
ENOUGH = 10

_RANKINGS = (("Busiest", "departures"), ("Most delayed", "mean_delay"))
_FLOWS = (("More left", False), ("More landed", True))  # and whether the least come first


def describe(console: Console, facts: Facts) -> None:
    """Say what is computed, from what, and in which time zone it is shown."""
    first, last = (f"{moment:%-d %B %Y %H:%M %Z}" for moment in (facts.first, facts.last))
    lines = (
        "[bold]Departures, mean and maximal delay per airport, in sliding windows of 60 minutes "
        "every 10 minutes[/bold]",
        f"{facts.rows:,} flights from {', '.join(AIRPORTS)}; departures from {first} to {last}.",
        f"{facts.not_departed:,} flights never left: their event time is null. They are in no "
        "window, and they are counted below.",
        f"{facts.next_day:,} flights left after midnight, on the day after their scheduled one.",
        f"Time zone: the data's clock readings are local ({ZONE}). The instant of a departure is "
        "the scheduled reading, as an instant, plus the delay; shown in New York again, "
        f"{facts.rows - facts.not_departed - facts.disagreements:,} of "
        f"{facts.rows - facts.not_departed:,} agree with the published departure reading.",
        "Then two streams at once: flights with the weather, and departures with arrivals.",
    )
    console.print(Panel("\n".join(lines), title="The demo", title_align="left", padding=(1, 2)))


def show_plan(console: Console, plan: str) -> None:
    """Show what ``explain()`` says."""
    console.print(Panel(plan.strip(), title="explain()", title_align="left", highlight=True))


def show_metrics(console: Console, metrics: Mapping[str, Any], seconds: float) -> None:
    """Show the counters of the run, one line each, and how long it took."""
    table = Table(title="Counters", title_justify="left", show_header=False, box=None)
    table.add_column()
    table.add_column(justify="right")
    for name, count in metrics.items():
        table.add_row(name, f"{count:,}", style="bold" if count else "dim")
    console.print(table)
    console.print(f"The windows took {seconds:.1f} s, with the start of the Python workers.\n")


def show_hours(console: Console, windows: pd.DataFrame) -> None:
    """Show the busiest and the most delayed hours of each airport, in local time.

    Parameters
    ----------
    console : Console
    windows : pandas.DataFrame
        See `examples.flights.picture.draw`.
    """
    title = f"Hours that stand out, at most one a day ({ZONE}; delays in minutes)"
    table = _table(title)
    for name in ("Airport", "", "Hour"):
        table.add_column(name, no_wrap=True)
    for name in ("Flights", "Mean", "Max"):
        table.add_column(name, justify="right", no_wrap=True)
    for origin in AIRPORTS:
        mine = windows[windows["origin"] == origin]
        for ranking, column in _RANKINGS:
            for place, row in enumerate(top(mine, column).to_dict("records")):
                labels = (origin, ranking) if place == 0 else ("", "")
                hour = local_hour(row["window_start"], row["window_end"])
                delays = (f"{row['mean_delay']:.1f}", f"{row['max_delay']:.0f}")
                table.add_row(*labels, hour, str(row["departures"]), *delays)
        table.add_section()
    console.print(table)


def _table(title: str) -> Table:
    """Return a table that a terminal of 80 columns shows whole."""
    return Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))


def top(windows: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return the `SHOWN` windows with the largest values, at most one of a local day.

    Parameters
    ----------
    windows : pandas.DataFrame
        Windows of one airport.
    column : str
        What is ranked; for ``"mean_delay"``, only windows with `ENOUGH` departures.
    """
    ranked = windows if column == "departures" else windows[windows["departures"] >= ENOUGH]
    return _best(ranked, column, ascending=False)


def _best(windows: pd.DataFrame, column: str, *, ascending: bool) -> pd.DataFrame:
    ranked = windows.sort_values([column, "window_start"], ascending=[ascending, True])
    again = ranked["window_start"].dt.tz_convert(ZONE).dt.date.duplicated()
    best: pd.DataFrame = ranked[~again].head(SHOWN)
    return best


def show_visibility(console: Console, answer: Answer, facts: Facts) -> None:
    """Show how flights were delayed in good and in bad visibility.

    Parameters
    ----------
    console : Console
    answer : Answer
        See `examples.flights.two_streams.by_visibility`.
    facts : Facts
    """
    title = "Flights joined with the nearest weather reading at their airport, ±1 hour"
    table = _table(title)
    table.add_column("Visibility, miles", no_wrap=True)
    for name in ("Flights", "Mean delay, minutes", "Delayed by more than an hour"):
        table.add_column(name, justify="right")
    for row in answer.rows.to_dict("records"):
        delays = (
            (f"{row['mean_delay']:.1f}", f"{row['late']:.1%}") if row["flights"] else ("–", "–")
        )
        table.add_row(row["visibility"], f"{row['flights']:,}", *delays)
    console.print(table)
    console.print(
        f"{answer.rows['flights'].sum():,} of {facts.rows - facts.not_departed:,} departures; "
        f"join and classes took {answer.seconds:.1f} s.\n"
    )


def show_flow(console: Console, answer: Answer) -> None:
    """Show the hours in which departures and arrivals differ most, of each airport.

    Parameters
    ----------
    console : Console
    answer : Answer
        See `examples.flights.two_streams.hours`.
    """
    title = f"Departures and arrivals of the same hour, at most one a day ({ZONE})"
    table = _table(title)
    for name in ("From", "", "Hour"):
        table.add_column(name, no_wrap=True)
    for name in ("Left", "Landed", "Difference"):
        table.add_column(name, justify="right", no_wrap=True)
    hours = answer.rows.assign(difference=answer.rows["departures"] - answer.rows["arrivals"])
    for origin in AIRPORTS:
        mine = hours[hours["origin"] == origin]
        for name, ascending in _FLOWS:
            best = _best(mine, "difference", ascending=ascending)
            for place, row in enumerate(best.to_dict("records")):
                labels = (origin, name) if place == 0 else ("", "")
                hour = local_hour(row["window_start"], row["window_end"])
                counts = (str(row["departures"]), str(row["arrivals"]))
                table.add_row(*labels, hour, *counts, f"{row['difference']:+}")
        table.add_section()
    console.print(table)
    console.print("\n".join(_flow_notes(answer)))


def _flow_notes(answer: Answer) -> tuple[str, ...]:
    hours = answer.rows
    left, landed = hours["departures"].sum(), hours["arrivals"].sum()
    only_left, only_landed = (hours["arrivals"] == 0).sum(), (hours["departures"] == 0).sum()
    return (
        "Arrivals are those of flights from the airport, wherever they landed: the data have no "
        "flights to New York. An arrival is the departure and the published minutes in the air: "
        "the landing time without taxiing.",
        f"{left:,} departures and {landed:,} arrivals ({left - landed:,} flights left and have no "
        f"time in the air) are in {len(hours):,} windows; {only_left + only_landed:,} of them had "
        f"only one side: {only_left:,} only departures, {only_landed:,} only arrivals.",
        f"The co-group took {answer.seconds:.1f} s.\n",
    )


def local_hour(start: pd.Timestamp, end: pd.Timestamp) -> str:
    """Write a window as New York clocks showed it: ``Fri  8 Mar 14:10–15:10 EST``.

    With both names of the zone where they differ, at the ends of summer time.
    """
    first, last = start.tz_convert(ZONE), end.tz_convert(ZONE)
    zone = "" if first.tzname() == last.tzname() else f" {first:%Z}"
    return f"{first:%a %e %b %H:%M}{zone}–{last:%H:%M %Z}"
