"""``python -m tests.sql --seeds 0..10000``: random texts, against the API and broken."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track

from tests.sql.checks import failure_of


def main(
    seeds: Annotated[str, typer.Option(help="FIRST..LAST, the latter left out.")] = "0..1000",
) -> None:
    """Ask random statements; a text is broken for each that is whole."""
    first, last = map(int, seeds.split(".."))
    console, failed = Console(), 0
    for seed in track(range(first, last), "Asking", console=console, transient=True):
        failure = failure_of(seed)
        if failure is not None:
            failed += 1
            console.print(f"seed {seed}: {failure}", soft_wrap=True, markup=False)
    console.print(f"{last - first} seeds, {failed} failed")
    raise typer.Exit(1 if failed else 0)


if __name__ == "__main__":
    typer.run(main)
