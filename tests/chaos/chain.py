"""``python -m tests.chaos.chain``: kill both of two queries, of which one follows the other."""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import pyarrow.parquet as pq
import typer
from rich.console import Console

from gpu_windows.commits.path_log import NOTHING, PathLog
from gpu_windows.commits.records import RESULT
from tests.chaos.driver import CHAIN, CHAIN_OUT, FINISHED
from tests.chaos.harness import Run, fresh, prepare, rows_written

FIRST = "sliding"
#: Seconds that a query works at most before it is killed.
_LONGEST = 6.0


def main(
    deaths: Annotated[int, typer.Option(min=0, help="Deaths of each query.")] = 10,
    seed: Annotated[int, typer.Option()] = 0,
    batches: Annotated[int, typer.Option(help="Micro-batches of the first.")] = 40,
    rows: Annotated[int, typer.Option(help="Rows of a micro-batch.")] = 300,
) -> None:
    """Run a chain with deaths and without, and compare what both of its queries wrote."""
    console = Console()
    with tempfile.TemporaryDirectory() as name:
        whole = Path(name) / "whole"
        prepare(whole, batches, rows)
        run_chain(whole, 0, random.Random(seed))
        killed = fresh(Path(name) / "killed", whole)
        began = time.monotonic()
        died = run_chain(killed, deaths, random.Random(seed))
        wrong = differences(whole, killed)
    seconds = round(time.monotonic() - began)
    console.print(f"deaths {died}, in {seconds} s; outputs that differ: {wrong or 'none'}")
    raise typer.Exit(1 if wrong or min(died.values()) < deaths else 0)


def run_chain(folder: Path, deaths: int, rng: random.Random) -> dict[str, int]:
    """Run both queries to their end, kill each so often; return how often each died.

    A query dies fewer times if the first is at its end before.
    """
    runs = {name: Run(name, folder) for name in (FIRST, CHAIN)}
    died = dict.fromkeys(runs, 0)
    dies_at = {name: rng.uniform(0.0, _LONGEST) for name in runs}
    began: dict[str, float] = {}
    while runs[CHAIN].is_running:
        time.sleep(0.02)
        if not runs[FIRST].is_running and not (folder / FINISHED).exists():
            runs[FIRST].finish()
            (folder / FINISHED).touch()
        for name, run in runs.items():
            if not run.is_running or not run.goes_on or died[name] == deaths:
                continue
            began.setdefault(name, time.monotonic())
            if time.monotonic() - began[name] >= dies_at[name]:
                run.kill("driver", rng)
                died[name] += 1
                dies_at[name] = rng.uniform(0.0, _LONGEST)
                del began[name]
                runs[name] = Run(name, folder)
    runs[CHAIN].finish()
    return died


def differences(whole: Path, killed: Path) -> list[str]:
    """Return the outputs in which two runs of a chain differ."""
    found = [kind for kind in ("result", "late") if _written(whole, kind) != _written(killed, kind)]
    return found + ([CHAIN] if last_rows(whole) != last_rows(killed) else [])


def _written(folder: Path, kind: str) -> list[tuple[Any, ...]]:
    rows = rows_written(folder, kind)
    assert rows
    return rows


def last_rows(folder: Path) -> list[tuple[Any, ...]]:
    """Return what the second query wrote, in whatever micro-batches."""
    out = folder / CHAIN_OUT
    commits = PathLog(out.resolve().as_uri()).between(NOTHING)
    found = [
        tuple(row.values())
        for commit in commits
        if RESULT in commit.outputs
        for row in pq.read_table(out / commit.outputs[RESULT].folder).to_pylist()
    ]
    assert found
    return sorted(found, key=repr)


if __name__ == "__main__":
    typer.run(main)
