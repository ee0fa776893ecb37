"""``python -m tests.chaos``: kill streaming queries at random moments, and compare."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from statistics import median
from typing import Annotated, get_args

import typer
from rich.console import Console
from rich.table import Table

from tests.chaos.driver import QUERIES
from tests.chaos.harness import (
    Death,
    Victim,
    differences,
    fresh,
    is_planned_alike,
    prepare,
    run_with_death,
    undisturbed,
)

VICTIMS: tuple[Victim, ...] = get_args(Victim)
#: How often a run may end before it was killed.
MOMENTS = 10
#: Rows in which a run differs that are shown.
_SHOWN = 20


def main(
    deaths: Annotated[int, typer.Option(min=1, help="Deaths of each kind for each query.")] = 4,
    seed: Annotated[int, typer.Option(help="Seed of the first.")] = 0,
    queries: Annotated[str, typer.Option(help="Names, with commas.")] = ",".join(QUERIES),
    victims: Annotated[str, typer.Option(help="Names, with commas.")] = ",".join(VICTIMS),
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
            for victim in (each for each in VICTIMS if each in victims.split(",")):
                times, wrong = [], 0
                for each in range(seed, seed + deaths):
                    death, is_wrong = _death(
                        query, whole, victim, seconds, random.Random(each), console
                    )
                    console.print(f"{query}, seed {each}: {death}, different: {is_wrong}")
                    times += [] if death is None else [death.recovery]
                    wrong += is_wrong
                different += wrong
                recovery = (f"{median(times):.2f}", f"{max(times)}") if times else ("", "")
                shown = (str(len(times)), str(wrong), *recovery)
                table.add_row(query, victim, *shown)
    console.print(table)
    raise typer.Exit(1 if different else 0)


def _death(
    query: str,
    whole: Path,
    victim: Victim,
    seconds: float,
    rng: random.Random,
    console: Console,
) -> tuple[Death | None, bool]:
    """Return a death, and whether other rows were written than without one.

    A run may end before its moment has come, and Spark may plan other micro-batches after a death:
    then it is run again, with another moment.
    """
    for _ in range(MOMENTS):
        folder = fresh(whole.parent / "killed", whole)
        death = run_with_death(query, folder, victim, seconds, rng)
        if is_planned_alike(folder, whole):
            found = differences(folder, whole, query)
            for each in found[:_SHOWN]:
                console.print(each, markup=False)
            if death is not None or found:
                return death, bool(found)
        else:
            console.print(f"{query}: Spark took two files at once after {death}, not compared")
    raise AssertionError(f"{query}: no {victim} killed so that runs compare, at {MOMENTS} moments")


if __name__ == "__main__":
    typer.run(main)
