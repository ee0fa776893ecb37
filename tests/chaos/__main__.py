"""``python -m tests.chaos``: kill streaming queries at random moments, and compare."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from statistics import median
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from tests.chaos.driver import QUERIES
from tests.chaos.harness import (
    Death,
    Victim,
    fresh,
    prepare,
    rows_written,
    run_with_death,
    undisturbed,
)

KINDS = ("result", "late")


def main(
    seeds: Annotated[int, typer.Option(help="Deaths of each kind for each query.")] = 20,
    queries: Annotated[str, typer.Option(help="Names, with commas.")] = ",".join(QUERIES),
    batches: Annotated[int, typer.Option(help="Micro-batches of a run.")] = 8,
    rows: Annotated[int, typer.Option(help="Rows of a micro-batch.")] = 2_000,
) -> None:
    """Kill the driver and Python workers of streaming queries; what is written must not differ."""
    console, different = Console(), 0
    table = Table("query", "victim", "deaths", "lost or doubled", "recovery s, median", "worst")
    with tempfile.TemporaryDirectory() as name:
        for query in queries.split(","):
            whole = Path(name) / query
            prepare(whole, batches, rows)
            seconds = undisturbed(query, whole)
            for victim in ("driver", "worker"):
                deaths, wrong = _deaths(query, whole, victim, seconds, seeds)
                different += len(wrong)
                times = [death.recovery for death in deaths]
                shown = (str(len(deaths)), str(len(wrong)), f"{median(times)}", f"{max(times)}")
                table.add_row(query, victim, *shown)
                console.print(f"{query}, {victim}: {deaths}, different: {wrong}")
    console.print(table)
    raise typer.Exit(1 if different else 0)


def _deaths(
    query: str, whole: Path, victim: Victim, seconds: float, seeds: int
) -> tuple[list[Death], list[int]]:
    """Return the deaths, and the seeds with which other rows were written."""
    wanted = {kind: rows_written(whole, kind) for kind in KINDS}
    deaths, wrong = [], []
    for seed in range(seeds):
        folder = fresh(whole.parent / "killed", whole)
        death = run_with_death(query, folder, victim, seconds, random.Random(seed))
        if death is not None:
            deaths.append(death)
        if {kind: rows_written(folder, kind) for kind in KINDS} != wanted:
            wrong.append(seed)
    return deaths, wrong


if __name__ == "__main__":
    typer.run(main)
