"""``python -m tests.chaos``: kill streaming queries at random moments, and compare."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterable
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
#: How often a run may end before it was killed.
MOMENTS = 10


def main(
    deaths: Annotated[int, typer.Option(min=1, help="Deaths of each kind for each query.")] = 4,
    seed: Annotated[int, typer.Option(help="Seed of the first.")] = 0,
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
                found, wrong = _deaths(query, whole, victim, seconds, range(seed, seed + deaths))
                different += len(wrong)
                times = [death.recovery for death in found]
                shown = (str(len(found)), str(len(wrong)), f"{median(times)}", f"{max(times)}")
                table.add_row(query, victim, *shown)
                console.print(f"{query}, {victim}: {found}, different: {wrong}")
    console.print(table)
    raise typer.Exit(1 if different else 0)


def _deaths(
    query: str, whole: Path, victim: Victim, seconds: float, seeds: Iterable[int]
) -> tuple[list[Death], list[int]]:
    """Return a death for each seed, and the seeds with which other rows were written.

    A run may end before its moment has come: then further moments of its seed are tried.
    """
    wanted = {kind: rows_written(whole, kind) for kind in KINDS}
    deaths, wrong = [], set()
    for seed in seeds:
        rng = random.Random(seed)
        for _ in range(MOMENTS):
            folder = fresh(whole.parent / "killed", whole)
            death = run_with_death(query, folder, victim, seconds, rng)
            if {kind: rows_written(folder, kind) for kind in KINDS} != wanted:
                wrong.add(seed)
            if death is not None:
                deaths.append(death)
                break
        else:
            raise AssertionError(f"{query}: no {victim} to kill at {MOMENTS} moments")
    return deaths, sorted(wrong)


if __name__ == "__main__":
    typer.run(main)
