"""``python -m tests.chaos``: kill streaming queries at random moments, and compare."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
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
    fresh,
    kinds_of,
    prepare,
    rows_written,
    run_with_death,
    undisturbed,
)

VICTIMS: tuple[Victim, ...] = get_args(Victim)
#: How often a run may end before it was killed.
MOMENTS = 10


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
                    death, is_wrong = _death(query, whole, victim, seconds, random.Random(each))
                    console.print(f"{query}, seed {each}: {death}, different: {is_wrong}")
                    times.append(death.recovery)
                    wrong += is_wrong
                different += wrong
                shown = (str(deaths), str(wrong), f"{median(times):.2f}", f"{max(times)}")
                table.add_row(query, victim, *shown)
    console.print(table)
    raise typer.Exit(1 if different else 0)


def _death(
    query: str, whole: Path, victim: Victim, seconds: float, rng: random.Random
) -> tuple[Death, bool]:
    """Return a death, and whether other rows were written than without one.

    A run may end before its moment has come: then it is run again, with another moment.
    """
    is_wrong = False
    for _ in range(MOMENTS):
        folder = fresh(whole.parent / "killed", whole)
        death = run_with_death(query, folder, victim, seconds, rng)
        for kind in kinds_of(query):
            found, wanted = (Counter(map(repr, rows_written(f, kind))) for f in (folder, whole))
            if found != wanted:
                is_wrong = True
                print(kind, "more:", [*(found - wanted)][:9], "less:", [*(wanted - found)][:9])  # noqa: T201
        if death is not None:
            return death, is_wrong
    raise AssertionError(f"{query}: no {victim} to kill at {MOMENTS} moments")


if __name__ == "__main__":
    typer.run(main)
