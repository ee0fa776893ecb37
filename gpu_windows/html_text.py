"""Text and HTML of queries for consoles and notebooks: tables of names, and bars of windows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape

_CELL = "text-align:left;vertical-align:top;padding:1px 12px 1px 0"
#: Pixels of a picture: its width, and the height of a bar with the space below it.
_WIDTH, _BAR = 360, 9
#: Most windows that a picture shows.
_MAX_BARS = 24


def table_html(title: str, rows: Mapping[str, str], note: str = "") -> str:
    """Return a table of names and texts.

    Parameters
    ----------
    title : str
        Above the table.
    rows : mapping of str to str
        Plain text; lines of a text stay lines.
    note : str
        HTML below the table.
    """
    cells = "".join(
        f'<tr><th style="{_CELL}">{escape(name)}</th><td style="{_CELL}">{_lines(text)}</td></tr>'
        for name, text in rows.items()
    )
    return f"<div><b>{escape(title)}</b><table>{cells}</table>{note}</div>"


def table_text(title: str, rows: Mapping[str, str]) -> str:
    """Return the same as plain text: a line for each name."""
    width = max(map(len, rows), default=0)
    lines = (f"  {name:<{width}}  {', '.join(text.splitlines())}" for name, text in rows.items())
    return "\n".join([title, *lines])


def text_html(text: str) -> str:
    """Return a text as it is, with its spaces and lines."""
    return f"<pre>{escape(text)}</pre>"


def _lines(text: str) -> str:
    return "<br/>".join(escape(line) for line in text.splitlines())


def windows_svg(spans: Iterable[tuple[float, float]]) -> str:
    """Return a picture of windows: a bar for each, time to the right, and which overlap.

    Parameters
    ----------
    spans : iterable of (float, float)
        Begin and end of each window, in any unit.
    """
    bars = list(spans)[:_MAX_BARS]
    if not bars:
        return ""
    begin, end = min(start for start, _ in bars), max(stop for _, stop in bars)
    scale = _WIDTH / (end - begin)
    shapes = "".join(
        f'<rect x="{(start - begin) * scale:.1f}" y="{number * _BAR}"'
        f' width="{max((stop - start) * scale - 1, 1):.1f}" height="{_BAR - 3}"'
        f' fill="#4c78a8"><title>window {number + 1}</title></rect>'
        for number, (start, stop) in enumerate(bars)
    )
    height = len(bars) * _BAR
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" role="img"'
        f' style="margin:8px 0"'
        f' aria-label="{len(bars)} windows, time to the right">{shapes}</svg>'
    )
