"""Measurements as a picture: a bar a contestant, a mark a run."""

from __future__ import annotations

import io
import re
from pathlib import Path
from textwrap import wrap
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.contest import base_name
from benchmarks.report import OWN, Report
from gpu_windows.plots.style import FAINT, INK, KEY_COLOURS, SHADE, STYLE

#: Medians further apart than this go on a logarithmic axis.
LINEAR_UP_TO = 20.0
#: Letters of a line of the title.
_TITLE = 62
_CREATOR = re.compile(r"<dc:title>(Matplotlib v[\d.]+)")
_OURS, _OURS_TOO, _PEER, _FLOOR = KEY_COLOURS[0], KEY_COLOURS[4], "#9aa0a6", SHADE


def draw(report: Report) -> Figure:
    """Draw the bars in the order of the table, ours in blue."""
    style: Any = dict(STYLE)  # its keys are any strings, matplotlib's are listed one by one
    with mpl.rc_context(style):
        count = len(report.measurements)
        title = wrap(report.title(), _TITLE)
        height = 1.25 + 0.25 * len(title) + 0.52 * count
        figure = Figure(figsize=(9, height), dpi=150, layout="constrained")
        axes = figure.subplots()
        _bars(axes, report)
        axes.set_title("\n".join(title), size=13, pad=26)
        axes.annotate(
            report.about,
            (0, 1),
            (0, 9),
            xycoords="axes fraction",
            textcoords="offset points",
            size=9.5,
            color=FAINT,
        )
    return figure


def save(report: Report, path: Path) -> None:
    """Draw and write a file of the type that the path's name says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draw(report).savefig(path)


def _bars(axes: Axes, report: Report) -> None:
    medians = [m.median for m in report.measurements]
    logarithmic = max(medians) > LINEAR_UP_TO * min(medians)
    lowest = min(min(m.runs) for m in report.measurements) / 2 if logarithmic else 0.0
    highest = max(max(m.runs) for m in report.measurements)
    for place, m in enumerate(report.measurements):
        axes.barh(place, m.median - lowest, left=lowest, height=0.68, color=_colour(report, place))
        axes.plot(m.runs, [place] * len(m.runs), "|", color=INK, markersize=7, alpha=0.55)
        end = max(m.median, *m.runs)
        axes.annotate(
            _label(report, place), (end, place), (6, 0), textcoords="offset points", va="center"
        )
    if logarithmic:
        axes.set_xscale("log", subs=[2, 5])
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter("{x:g}")
    axes.set_xlim(lowest, highest * (3.0 if logarithmic else 1.25))
    names = [m.contestant for m in report.measurements]
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0, labelcolor=INK)
    scale = ", logarithmic" if logarithmic else ""
    axes.set_xlabel(f"seconds{scale}; bar: median, marks: runs")
    axes.grid(axis="x", color=SHADE, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines["left"].set_visible(False)


def _label(report: Report, place: int) -> str:
    m = report.measurements[place]
    ratio = report.ratio(m)
    related = "" if ratio is None or base_name(m.contestant) == OWN else f"  ({ratio:.1f}×)"
    return f"{m.median:.2f} s{related}" if m.median >= 0.1 else f"{m.median * 1e3:.1f} ms{related}"


def _colour(report: Report, place: int) -> str:
    m = report.measurements[place]
    if base_name(m.contestant) == OWN:
        return _OURS
    if m.contestant.startswith(OWN):
        return _OURS_TOO
    return _FLOOR if m.floor else _PEER


def as_svg(figure: Figure) -> str:
    """Return a picture as text, the same whenever the same Matplotlib draws it."""
    text = io.StringIO()
    settings: Any = {"svg.hashsalt": "gpu_windows", "savefig.dpi": 72}
    with mpl.rc_context(settings):
        figure.savefig(text, format="svg", metadata={"Date": None})
    return "".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines())


def made_by(svg: str) -> str | None:
    """Return which Matplotlib made a picture: another one places points otherwise."""
    found = _CREATOR.search(svg)
    return found[1] if found else None
