"""Plots of window results: a year as days by time of day, and series of windows of one day.

Every function draws on axes that it is given and takes a pandas DataFrame of windows with the
columns ``window_start`` and ``window_end`` (instants) and values. A window is drawn at its
middle, at the local time of a zone that the caller names. Colours are told apart by readers
with any kind of colour vision (a lightness ramp for amounts).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib import dates
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import BoundaryNorm, Colormap, LinearSegmentedColormap

from gpu_windows.plots.style import FAINT, RULE, SHADE

_DATES: Any = dates  # it has no annotations
_MINUTES_A_DAY = 1440
_EPOCH = date(1970, 1, 1).toordinal()


@dataclass(frozen=True)
class DayGrid:
    """Windows by day and time of day.

    Parameters
    ----------
    values : ndarray of float64, shape (slots, days)
        NaN where there is no window.
    first_day : datetime.date
        The day of the first column.
    slot_minutes : int
        Minutes from one slot to the next: the windows' slide.
    day_start : int
        Minutes after local midnight at which a day begins.
    """

    values: npt.NDArray[np.float64]
    first_day: date
    slot_minutes: int
    day_start: int


def delay_colours(levels: Sequence[float]) -> tuple[Colormap, BoundaryNorm]:
    """Return a ramp from pale to nearly black, and the steps at which it changes.

    Parameters
    ----------
    levels : sequence of float
        Limits between the colours; what is beyond the ends has colours of its own.
    """
    stops = mpl.colormaps["magma_r"](np.linspace(0.02, 0.97, 64))
    ramp = LinearSegmentedColormap.from_list("delay", [tuple(stop) for stop in stops])
    return ramp, BoundaryNorm(list(levels), ramp.N, extend="both")


def middles(windows: pd.DataFrame, zone: str) -> pd.Series:
    """Return the middle of every window as a local time of ``zone``."""
    middle = windows["window_start"] + (windows["window_end"] - windows["window_start"]) / 2
    return middle.dt.tz_convert(zone)


def date_numbers(moments: pd.Index | pd.Series) -> npt.NDArray[np.float64]:
    """Return instants as Matplotlib's dates: days since 1970 began in UTC."""
    since = pd.DatetimeIndex(moments) - pd.Timestamp(0, tz="UTC")
    return np.asarray(since / pd.Timedelta(days=1), np.float64)


def day_grid(
    windows: pd.DataFrame, value: str, *, zone: str, weight: str, day_start: int = 0
) -> DayGrid:
    """Lay windows out by local day and local time of day.

    Two windows share a cell where an hour comes twice, at the end of summer time: the cell
    has their mean, weighted by ``weight``. The hour that is missing in spring stays empty.

    Parameters
    ----------
    windows : pandas.DataFrame
        Windows of one key.
    value, weight : str
        Columns.
    zone : str
        IANA name of a time zone.
    day_start : int
        Minutes after midnight at which a day begins: what is before belongs to the day before.
    """
    local = middles(windows, zone)
    minute = (local.dt.hour * 60 + local.dt.minute).to_numpy()
    day = np.array([moment.toordinal() for moment in local], np.int64) - (minute < day_start)
    slide = _slide_minutes(windows)
    slot = (minute - day_start) % _MINUTES_A_DAY // slide
    first = int(day.min())
    shape = (_MINUTES_A_DAY // slide, int(day.max()) - first + 1)
    weights = windows[weight].to_numpy(np.float64)
    total, counted = np.zeros(shape), np.zeros(shape)
    np.add.at(total, (slot, day - first), windows[value].to_numpy(np.float64) * weights)
    np.add.at(counted, (slot, day - first), weights)
    values = np.full(shape, np.nan)
    np.divide(total, counted, out=values, where=counted > 0)
    return DayGrid(values, date.fromordinal(first), slide, day_start)


def draw_days(axes: Axes, grid: DayGrid, *, cmap: Colormap, norm: BoundaryNorm) -> QuadMesh:
    """Draw days from left to right, the time of day from top to bottom.

    Parameters
    ----------
    axes : Axes
    grid : DayGrid
    cmap, norm
        As `delay_colours` returns them.
    """
    slots, days = grid.values.shape
    left = grid.first_day.toordinal() - _EPOCH
    x = np.arange(left, left + days + 1)
    y = grid.day_start + grid.slot_minutes * np.arange(slots + 1)
    masked = np.ma.masked_invalid(grid.values)
    mesh = axes.pcolormesh(x, y, masked, cmap=cmap, norm=norm, rasterized=True)
    axes.set_ylim(grid.day_start + _MINUTES_A_DAY, grid.day_start)
    axes.set_xlim(left, left + days - 0.01)
    axes.xaxis.set_major_locator(_DATES.MonthLocator())
    axes.xaxis.set_major_formatter(_DATES.DateFormatter("%b"))
    clock_axis(axes, grid.day_start)
    return mesh


def clock_axis(axes: Axes, day_start: int, *, every: int = 240) -> None:
    """Label the y axis, in minutes after midnight, with clock readings."""
    ticks = range(day_start, day_start + _MINUTES_A_DAY + 1, every)
    labels = [f"{tick // 60 % 24:02d}:{tick % 60:02d}" for tick in ticks]
    axes.set_yticks(list(ticks), labels)
    axes.tick_params(length=0)


def day_profile(
    windows: pd.DataFrame, value: str, *, zone: str, days: int, day_start: int = 0
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the mean of a count by local time of day.

    Parameters
    ----------
    windows : pandas.DataFrame
        Windows of one key.
    value : str
        A column of counts: a window that does not exist counted nothing.
    zone : str
        IANA name of the time zone that days are of.
    days : int
        Days in the data.
    day_start : int
        Minutes after midnight at which a day begins.

    Returns
    -------
    minutes, counts : ndarray of float64
        Minutes after midnight, from ``day_start`` on; and the mean counts.
    """
    local = middles(windows, zone)
    slide = _slide_minutes(windows)
    slot = ((local.dt.hour * 60 + local.dt.minute - day_start) % _MINUTES_A_DAY) // slide
    counts = np.bincount(slot, weights=windows[value], minlength=_MINUTES_A_DAY // slide) / days
    return day_start + slide * np.arange(0.5, len(counts)), counts


def draw_profile(
    axes: Axes, minutes: npt.NDArray[np.float64], counts: npt.NDArray[np.float64]
) -> None:
    """Draw a `day_profile` sideways, on axes that share the y axis of `draw_days`."""
    axes.fill_betweenx(minutes, counts, color=SHADE, linewidth=0)
    axes.plot(counts, minutes, color=FAINT, linewidth=1.1)
    axes.set_xlim(0, None)
    axes.spines["left"].set_visible(False)
    axes.tick_params(length=0, labelleft=False)


def series(windows: pd.DataFrame, value: str, *, zone: str) -> pd.Series:
    """Return a column of the windows of one key by local time; NaN where there is no window.

    So a line that is drawn through it has holes where nothing happened.
    """
    starts = windows.set_index("window_start")[value].astype("float64").sort_index()
    slide = pd.Timedelta(minutes=_slide_minutes(windows))
    complete = starts.reindex(pd.date_range(starts.index[0], starts.index[-1], freq=slide))
    size = windows["window_end"].iloc[0] - windows["window_start"].iloc[0]
    complete.index = (complete.index + size / 2).tz_convert(zone)
    return complete


def draw_delays(axes: Axes, mean: pd.Series, latest: pd.Series, *, colour: str) -> None:
    """Draw a mean as a line, and from it up to the maximum a band.

    Parameters
    ----------
    axes : Axes
    mean, latest : pandas.Series
        As `series` returns them.
    colour : str
        As matplotlib takes it.
    """
    at = date_numbers(mean.index)
    axes.fill_between(at, mean, latest, color=colour, alpha=0.16, linewidth=0)
    axes.plot(at, latest, color=colour, linewidth=0.8, alpha=0.6)
    axes.plot(at, mean, color=colour, linewidth=2.4, solid_capstyle="round")


def hours_axis(axes: Axes, first: datetime, last: datetime, *, zone: str, every: int = 3) -> None:
    """Limit the x axis to ``[first, last]`` and label it with the hours of a zone."""
    tz = ZoneInfo(zone)
    axes.set_xlim(*date_numbers(pd.DatetimeIndex([first, last])))
    axes.xaxis.set_major_locator(_DATES.HourLocator(byhour=range(0, 24, every), tz=tz))
    axes.xaxis.set_major_formatter(_DATES.DateFormatter("%H:%M", tz=tz))
    axes.grid(axis="x", color=RULE, linewidth=0.6)
    axes.tick_params(length=0)
    axes.set_axisbelow(True)


def _slide_minutes(windows: pd.DataFrame) -> int:
    """Return the greatest distance that divides every distance between two windows."""
    starts = np.unique(windows["window_start"].astype("datetime64[us, UTC]").astype("int64"))
    if len(starts) < 2:
        size = windows["window_end"].iloc[0] - windows["window_start"].iloc[0]
        return int(size / timedelta(minutes=1))
    return int(np.gcd.reduce(np.diff(starts)) // 60_000_000)
