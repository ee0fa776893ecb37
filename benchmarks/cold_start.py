"""Compares what a cold session takes with this checkout and with another one, in turns.

``python -m benchmarks.cold_start --baseline PATH``: `PATH` is a worktree of another commit. Every
figure is of a process of its own: imports, what a worker of Spark's loads, and the first result.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks import machine
from benchmarks.checkouts import ROOT, Checkout
from benchmarks.cold_start_turn import Figures
from benchmarks.data import DataSet, default_root

#: Of a step the program that comes before it, and its own.
STEPS = {
    "import gpu_windows": ("", "import gpu_windows"),
    "names of a query": (
        "import gpu_windows as gw",
        "gw.stream, gw.WatermarkStrategy, gw.SlidingEventTimeWindows, gw.count, gw.sum",
    ),
    "a worker's modules": ("import pyspark.worker", "import gpu_windows.spark_glue.tasks.workers"),
    "its first kernel": (
        "import gpu_windows.spark_glue.tasks.workers, numpy as np, pyarrow as pa\npa.array([1])",
        "from gpu_windows.kernels.cpu.keys import Encoder\nEncoder().encode(np.arange(9))",
    ),
}

_PROGRAM = """
import json, time
{before}
wall, cpu = time.perf_counter(), time.process_time()
{program}
cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
print(json.dumps({{{step!r}: {{"seconds": wall, "cpu_s": cpu}}}}))
"""

_WARM = "from gpu_windows.kernels.warm import warm\n[*warm('cpu')]\nprint('{}')"

#: Seconds after which a process that has not answered is ended.
_LIMIT = 600.0

app = typer.Typer(add_completion=False)


def run_python(checkout: Checkout, arguments: Sequence[str]) -> Figures:
    """Run Python with the package of a checkout; return what it writes last."""
    with checkout.path() as path:
        finished = subprocess.run(
            [sys.executable, *arguments],
            env={**os.environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"},  # not this folder's
            stdout=subprocess.PIPE,
            text=True,
            timeout=_LIMIT,
            check=True,
        )
    figures: Figures = json.loads(finished.stdout.splitlines()[-1])
    return figures


def measure_imports(checkout: Checkout) -> Figures:
    """Measure each step of `STEPS` in a process of its own."""
    found: Figures = {}
    for step, (before, program) in STEPS.items():
        text = _PROGRAM.format(before=before, program=program, step=step)
        found |= run_python(checkout, ["-c", text])
    return found


def warm_up(checkout: Checkout) -> None:
    """Have all kernels in the cache on disk, and the files of modules in memory."""
    run_python(checkout, ["-c", _WARM])
    measure_imports(checkout)


def measure_session(checkout: Checkout, folder: Path) -> Figures:
    """Measure the first query of a session, and the second one."""
    return run_python(checkout, ["-m", "benchmarks.cold_start_turn", str(folder)])


def show(turns: Mapping[str, Sequence[Figures]], console: Console) -> None:
    """Print medians of both checkouts."""
    table = Table("step", "seconds", "CPU s")
    before, now = turns.values()
    for step in before[0]:
        cells = []
        for figure in ("seconds", "cpu_s"):
            of_both = ([turn[step][figure] for turn in each] for each in (before, now))
            pair = map(statistics.median, of_both)
            cells.append("{:.3f} -> {:.3f}".format(*pair))
        table.add_row(step, *cells)
    console.print(table)


@app.command()
def main(
    *,
    baseline: Annotated[Path, typer.Option(help="Root of a worktree of another commit.")],
    rows: Annotated[int, typer.Option(help="Of the query; 0: no session.", min=0)] = 10_000_000,
    turns: Annotated[int, typer.Option(help="Of each checkout, of imports.", min=1)] = 9,
    sessions: Annotated[int, typer.Option(help="Of each checkout, of sessions.", min=1)] = 5,
    data: Annotated[Path | None, typer.Option(help="Where data sets are kept.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="File for the figures.")] = None,
) -> None:
    """Measure cold starts by two checkouts, in turns."""
    if not (baseline / "gpu_windows").is_dir():
        raise typer.BadParameter(f"a checkout has gpu_windows, got {baseline}")
    console, load = Console(), machine.load()
    checkouts = [Checkout("baseline", baseline.resolve()), Checkout("this", ROOT)]
    for each in checkouts:
        warm_up(each)
    found: dict[str, dict[str, list[Figures]]] = {"imports": {}, "sessions": {}}
    folder = DataSet(rows=rows).ensure(data or default_root()) if rows else None
    for number in range(turns):
        for each in checkouts[:: -1 if number % 2 else 1]:
            found["imports"].setdefault(each.name, []).append(measure_imports(each))
    for number in range(sessions if folder else 0):
        for each in checkouts[:: -1 if number % 2 else 1]:
            assert folder is not None
            found["sessions"].setdefault(each.name, []).append(measure_session(each, folder))
            console.print(f"session {number + 1} of {sessions}: {each.name}", highlight=False)
    console.print(f"baseline: {checkouts[0].commit}, this: {checkouts[1].commit}; load {load}")
    for turns_of in filter(None, found.values()):
        show(turns_of, console)
    if json_file is not None:
        facts = {"machine": {**machine.describe(), "load": load}, **found}
        json_file.write_text(json.dumps(facts, indent=2) + "\n")


if __name__ == "__main__":
    app()
