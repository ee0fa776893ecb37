"""Measurements as JSON and as a table."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks import machine
from benchmarks.contest import base_name
from benchmarks.data import DataSet
from benchmarks.measure import Measurement

#: The contestant that all others are related to.
OWN = "gpu_windows"


@dataclass(frozen=True)
class Report:
    """One run of one benchmark.

    Parameters
    ----------
    benchmark, about : str
    data_set : DataSet
    measurements : tuple of Measurement
    notes : tuple of str
        Lines for below the table.
    load : float
        The machine's load average when it began.
    columns : callable, optional
        See `benchmarks.contest.Benchmark`.
    """

    benchmark: str
    about: str
    data_set: DataSet
    measurements: tuple[Measurement, ...]
    notes: tuple[str, ...] = ()
    load: float = 0.0
    columns: Callable[[Measurement], Mapping[str, str]] | None = None

    def rows(self) -> list[dict[str, Any]]:
        """Return one JSON object a contestant; its name is unique in a run."""
        where, what = {**machine.describe(), "load": self.load}, machine.versions()
        when = datetime.now(UTC).isoformat(timespec="seconds")
        return [
            {
                "benchmark": self.benchmark,
                "contestant": m.contestant,
                "rows": self.data_set.rows,
                "keys": self.data_set.keys,
                "median_s": m.median,
                "runs": list(m.runs),
                "shuffled": self.data_set.shuffled,
                "size_us": m.window.size,
                "slide_us": m.window.slide,
                "floor": m.floor,
                "time": when,
                "machine": where,
                "versions": what,
                **({"details": dict(m.details)} if m.details else {}),
            }
            for m in self.measurements
        ]

    def write_json(self, path: Path) -> Path:
        """Write `rows` to a file; a folder gets one named by benchmark, data and machine."""
        if path.is_dir():
            path /= f"{self.benchmark}-{self.data_set.folder_name}-{machine.slug()}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.rows(), indent=2) + "\n")
        return path

    def ratio(self, measurement: Measurement) -> float | None:
        """Return the median over that of our contestant with the same windows."""
        for own in self.measurements:
            if base_name(own.contestant) == OWN and own.window == measurement.window:
                return measurement.median / own.median
        return None

    def title(self) -> str:
        """Return benchmark, windows and data in words."""
        windows = {m.window for m in self.measurements}
        what = windows.pop().describe() if len(windows) == 1 else "windows of several sizes"
        return f"{self.benchmark}: {what} over {self.data_set.describe()}"

    def show(self, console: Console) -> None:
        """Print the table and the notes."""
        console.print(self.title(), style="bold", markup=False, highlight=False)
        ratio = f"; ratio: to the median of {OWN}" if self.columns is None else ""
        console.print(f"{self.about}{ratio}", highlight=False)
        texts = [(self.columns or self._times)(m) for m in self.measurements]
        table = Table()
        table.add_column("contestant", no_wrap=True)
        for heading in texts[0]:
            table.add_column(heading, justify="right")
        for m, text in zip(self.measurements, texts, strict=True):
            table.add_row(
                escape(m.contestant) + (" (floor)" if m.floor else ""),
                *text.values(),
                style="bold" if base_name(m.contestant) == OWN else None,
            )
        console.print(table)
        for note in self.notes:
            console.print(note, markup=False, highlight=False)

    def _times(self, m: Measurement) -> dict[str, str]:
        """Return the columns of a table that compares times."""
        ratio = self.ratio(m)
        return {
            "median s": f"{m.median:.3f}",
            "min s": f"{min(m.runs):.3f}",
            "rows/s": _magnitude(self.data_set.rows / m.median),
            "ratio": "" if ratio is None else f"{ratio:.2f}",
        }


def _magnitude(count: float) -> str:
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if count >= size:
            return f"{count / size:,.2f} {unit}"
    return f"{count:,.2f}  "
