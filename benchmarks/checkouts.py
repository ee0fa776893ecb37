"""Compares the streaming engine of this checkout with that of another one, in turns.

``python -m benchmarks.checkouts --baseline PATH``: `PATH` is a worktree of another commit. Both run
the same queries over the same micro-batches; the code that measures is that of this checkout.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from benchmarks import machine
from benchmarks.checkout_turn import CASES, Size

ROOT = Path(__file__).parents[1]
#: Rows and keys of small micro-batches, and how many of them count.
_SMALL_ROWS, _SMALL_KEYS, _SMALL_BATCHES = 10_000, 1_000, 16
#: Micro-batches before those that count: of large ones, and of small ones that come after them.
_WARMUPS, _SMALL_WARMUPS, _TURNS = 4, 16, 3
#: Seconds after which a process that has not answered is ended.
_LIMIT = 1_800.0
#: Headings of the table, and the figures of a turn below them.
_FIGURES = {"CPU s a million rows": "cpu_s_a_million_rows", "ms a micro-batch": "ms_a_micro_batch"}

app = typer.Typer(add_completion=False)


@dataclass(frozen=True)
class Checkout:
    """A checkout of this repository.

    Parameters
    ----------
    name : str
        As the table shows it.
    root : pathlib.Path
    """

    name: str
    root: Path

    @property
    def commit(self) -> str:
        """Its commit, and whether files differ from it."""
        command = ["git", "-C", str(self.root), "describe", "--always", "--dirty", "--abbrev=12"]
        shown = subprocess.run(command, capture_output=True, text=True, check=False)
        return shown.stdout.strip()

    @contextmanager
    def path(self) -> Iterator[str]:
        """Return a ``PYTHONPATH`` with the package of the checkout and the benchmarks of this one.

        A folder with a link to the package alone comes first: the root of the checkout has
        benchmarks, too.
        """
        with TemporaryDirectory(prefix="gpu_windows-") as folder:
            Path(folder, "gpu_windows").symlink_to(self.root / "gpu_windows")
            yield os.pathsep.join([folder, str(ROOT)])


def turn(checkout: Checkout, case: str, sizes: Sequence[Size]) -> list[dict[str, float]]:
    """Measure a case in a process of its own; return the figures of each size."""
    parameters = {
        "checkout": str(checkout.root),
        "case": case,
        "sizes": [asdict(size) for size in sizes],
    }
    with checkout.path() as path:
        finished = subprocess.run(
            [sys.executable, "-m", "benchmarks.checkout_turn", json.dumps(parameters)],
            env={**os.environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"},  # not this folder's
            stdout=subprocess.PIPE,
            text=True,
            timeout=_LIMIT,
            check=True,
        )
    figures: list[dict[str, float]] = json.loads(finished.stdout.splitlines()[-1])
    return figures


def compare(
    checkouts: Sequence[Checkout], case: str, sizes: Sequence[Size], turns: int, console: Console
) -> list[dict[str, Any]]:
    """Measure a case in turns; return an object for each size and checkout."""
    found: dict[str, list[list[dict[str, float]]]] = {each.name: [] for each in checkouts}
    for number in range(turns):
        for each in checkouts if number % 2 == 0 else checkouts[::-1]:
            console.print(f"{case}: turn {number + 1} of {turns}, {each.name}", highlight=False)
            found[each.name].append(turn(each, case, sizes))
    return [
        {
            "case": case,
            **asdict(size),
            "checkout": each.name,
            "commit": each.commit,
            "turns": [figures[place] for figures in found[each.name]],
        }
        for place, size in enumerate(sizes)
        for each in checkouts
    ]


def median(row: Mapping[str, Any], figure: str) -> float:
    """Return the median of a figure over the turns."""
    return float(statistics.median(figures[figure] for figures in row["turns"]))


def table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return the medians, and those of this checkout over those of the other one."""
    made = Table("query", "rows")
    for heading in _FIGURES:
        made.add_column(heading, justify="right", no_wrap=True)
    for other, this in zip(rows[::2], rows[1::2], strict=True):
        cells = []
        for figure in _FIGURES.values():
            before, now = median(other, figure), median(this, figure)
            cells.append(f"{before:,.2f} -> {now:,.2f} ({now / before:.2f})")
        made.add_row(this["case"], f"{this['rows']:,}", *cells)
    return made


@app.command()
def main(
    *,
    baseline: Annotated[Path, typer.Option(help="Root of a worktree of another commit.")],
    rows: Annotated[int, typer.Option(help="Of a large micro-batch.", min=2)] = 1_000_000,
    keys: Annotated[int, typer.Option(help="Of a large micro-batch.", min=1)] = 10_000,
    batches: Annotated[int, typer.Option(help="Large ones that count.", min=1)] = 4,
    turns: Annotated[int, typer.Option(help="Of each checkout, in each case.", min=1)] = _TURNS,
    only: Annotated[str, typer.Option(help=f"Of {','.join(CASES)}; default: all.")] = "",
    json_file: Annotated[Path | None, typer.Option("--json", help="File for the figures.")] = None,
) -> None:
    """Run streaming queries by the engines of two checkouts, in turns."""
    console = Console()
    chosen = [name.strip() for name in only.split(",") if name.strip()] or list(CASES)
    if unknown := set(chosen) - set(CASES):
        message = f"a case must be one of {', '.join(CASES)}, got {', '.join(unknown)}"
        raise typer.BadParameter(message)
    if not (baseline / "gpu_windows").is_dir():
        raise typer.BadParameter(f"a checkout has gpu_windows, got {baseline}")
    sizes = [
        Size(rows, keys, _WARMUPS, batches),
        Size(_SMALL_ROWS, _SMALL_KEYS, _SMALL_WARMUPS, _SMALL_BATCHES),
    ]
    checkouts = [Checkout("baseline", baseline.resolve()), Checkout("this", ROOT)]
    load, found = machine.load(), []
    for case in chosen:
        found += compare(checkouts, case, sizes, turns, console)
        if json_file is not None:  # so that a run that is ended has what it measured
            facts = {"machine": {**machine.describe(), "load": load}, "rows": found}
            json_file.write_text(json.dumps(facts, indent=2) + "\n")
    console.print(f"baseline: {checkouts[0].commit}, this: {checkouts[1].commit}; load {load}")
    console.print("baseline -> this (ratio): medians of turns, of the means of their micro-batches")
    console.print(table(found))


if __name__ == "__main__":
    app()
