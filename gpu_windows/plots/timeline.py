"""Draws firings on a timeline: event time to the right, order of arrival downwards."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
from matplotlib import dates
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from gpu_windows.plots.style import FAINT, INK, KEY_COLOURS, RULE, SHADE, STYLE
from gpu_windows.runners.firings import Key, Trace

#: Colours of firings by timing: Okabe and Ito's.
TIMINGS = {"early": KEY_COLOURS[5], "on_time": KEY_COLOURS[0], "late": KEY_COLOURS[3]}
_LATE = KEY_COLOURS[1]
_TICKS_A_DAY = 86_400_000_000
_DATES: Any = dates  # it has no annotations


def draw(trace: Trace, *, has_zone: bool) -> Figure:
    """Draw a trace, a panel for each key, in the order in which keys came.

    ``has_zone``: whether its times are instants, not what clocks show.
    """
    keys = list(dict.fromkeys(row.key for row in trace.rows if row.key is not None))
    height = 1.3 + max(len(keys), 1) * (0.6 + 0.26 * (len(trace.rows) + 1))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(10.5, height), layout="constrained")
        panels = figure.subplots(max(len(keys), 1), 1, sharex=True, squeeze=False)[:, 0]
        for key, axes in zip(keys, panels, strict=False):
            _panel(axes, trace, key, _span(trace))
        for axes in panels:
            axes.xaxis.set_major_formatter(_DATES.AutoDateFormatter(axes.xaxis.get_major_locator()))
            axes.xaxis_date("UTC")
        panels[-1].set_xlabel("event time, UTC" if has_zone else "event time")
        figure.legend(handles=_legend(trace), loc="outside upper left", ncols=4, frameon=False)
    return figure


def _day(tick: int) -> float:
    return tick / _TICKS_A_DAY


def _span(trace: Trace) -> tuple[int, int]:
    """Return the first and the last tick of the picture."""
    times = [row.timestamp for row in trace.rows if row.timestamp is not None]
    times += [t for f in trace.firings for t in (f.start, f.end) if t is not None]
    low, high = (min(times), max(times)) if times else (0, 1)
    margin = max((high - low) // 40, 1)
    return low - margin, high + margin


def _panel(axes: Axes, trace: Trace, key: Key, span: tuple[int, int]) -> None:
    """Draw what happens to a key."""
    steps = len(trace.rows)
    axes.set_xlim(_day(span[0]), _day(span[1]))
    axes.set_ylim(steps + 0.9, -0.9)
    axes.set_title(", ".join(map(str, key)))
    axes.set_ylabel("row")
    axes.set_yticks([*range(steps), steps], [*map(str, range(steps)), "end"])
    axes.grid(axis="x", color=RULE, linewidth=0.6)
    _watermark(axes, trace, span)
    for place, firing in enumerate(f for f in trace.firings if f.key == key):
        start = span[0] if firing.start is None else firing.start
        end = span[1] if firing.end is None else firing.end
        y = firing.step + 0.3 + 0.16 * (place % 3)
        colour = TIMINGS[firing.timing]
        axes.plot([_day(start), _day(end)], [y, y], color=colour, linewidth=3, alpha=0.85)
        text = f" {len(firing.rows)}"
        axes.annotate(text, (_day(end), y), color=colour, fontsize=8, va="center", ha="left")
        for number in firing.rows:
            time = trace.rows[number].timestamp
            if time is not None:
                axes.plot(_day(time), y, "|", color=INK, markersize=7)
    _rows(axes, trace, key)


def _watermark(axes: Axes, trace: Trace, span: tuple[int, int]) -> None:
    """Draw the watermark: what is left of it has passed."""
    xs = [_day(min(max(watermark, span[0]), span[1])) for watermark in trace.watermarks]
    ys = [number + 0.5 for number in range(len(xs))]
    axes.fill_betweenx(ys, _day(span[0]), xs, step="post", color=SHADE, alpha=0.5, linewidth=0)
    axes.plot(xs, ys, color=FAINT, linewidth=1, drawstyle="steps-pre")


def _rows(axes: Axes, trace: Trace, key: Key) -> None:
    evicted = {eviction.row: eviction.step for eviction in trace.evictions}
    for row in trace.rows:
        if row.key != key or row.timestamp is None:
            continue
        x, gone = _day(row.timestamp), row.rejected is not None
        axes.plot(x, row.number, "x" if gone else "o", color=_LATE if gone else INK, markersize=7)
        if row.number in evicted:
            axes.plot(x, evicted[row.number] + 0.3, "x", color=_LATE, markersize=6)


def _legend(trace: Trace) -> list[Any]:
    """Return the legend's handles."""
    handles: list[Any] = [
        Line2D([], [], marker="o", color=INK, linestyle="", label="row"),
        Line2D([], [], marker="|", color=INK, linestyle="", label="row that the function sees"),
        Patch(color=SHADE, label="passed by the watermark"),
    ]
    timings = {firing.timing for firing in trace.firings}
    handles += [
        Line2D([], [], color=colour, linewidth=3, label=f"fires {timing.replace('_', ' ')}")
        for timing, colour in TIMINGS.items()
        if timing in timings
    ]
    if trace.evictions or any(row.rejected for row in trace.rows):
        handles.append(
            Line2D([], [], marker="x", color=_LATE, linestyle="", label="late or evicted row")
        )
    return handles
