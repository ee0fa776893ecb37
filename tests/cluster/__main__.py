"""``python -m tests.cluster``: what only a cluster can show."""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from tests.chaos.driver import JOIN, LATE
from tests.chaos.harness import prepare
from tests.cluster.connect import run_job, served
from tests.cluster.deaths import Outcome, Victim, batch, stream, undisturbed_stream
from tests.cluster.scale import scaled, shards
from tests.cluster.shipping import WAYS, submit, wheel
from tests.cluster.standalone import Cluster

app = typer.Typer(add_completion=False, help=__doc__)
_CONSOLE = Console(width=150)
_STREAMS = f"{LATE},{JOIN}"
#: Of one input, and a join.
_BATCH = "late rows,sessions,top,interval join"
Keep = Annotated[Path | None, typer.Option(help="Keep logs and outputs in this folder.")]


@contextmanager
def place(keep: Path | None) -> Iterator[Path]:
    """Give a folder: this one, or one that goes."""
    if keep is not None:
        keep.mkdir(parents=True)
        yield keep
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        yield Path(name)


@app.command()
def deaths(
    executors: Annotated[int, typer.Option(min=0, help="Deaths of executors of a run.")] = 4,
    workers: Annotated[int, typer.Option(min=0, help="Deaths of workers of a run.")] = 1,
    runs: Annotated[int, typer.Option(min=1, help="In turn streaming and batch.")] = 5,
    streams: Annotated[str, typer.Option(help="Names, with commas.")] = _STREAMS,
    seed: Annotated[int, typer.Option(help="Of the first run.")] = 0,
    batches: Annotated[int, typer.Option(help="Micro-batches of a stream.")] = 20,
    rows: Annotated[int, typer.Option(help="Rows of a micro-batch.")] = 300,
    keep: Keep = None,
) -> None:
    """Kill executors and workers at random moments; no row may be lost or doubled.

    A run whose deaths have not all come when it ends is begun again, with those that are left.
    """
    outcomes: dict[str, Outcome] = {}
    kinds = streams.split(",")
    with place(keep) as folder, Cluster(folder / "cluster") as cluster:
        wholes = {
            name: undisturbed_stream(name, folder / name.replace(" ", "-"), batches, rows)
            for name in kinds[: (runs + 1) // 2]
        }
        for number in range(runs):
            victims: list[Victim] = ["executor" for _ in range(executors)]
            victims += ["worker" for _ in range(workers)]
            rng = random.Random(seed + number)
            rng.shuffle(victims)
            name = kinds[number // 2 % len(kinds)] if number % 2 == 0 else "batch"
            while victims:
                began = time.monotonic()
                if name == "batch":
                    here = folder / f"batch-{number}-{len(victims)}"
                    prepare(here, 4, rows)
                    found = batch(cluster, here, _BATCH, victims, rng)
                else:
                    found = stream(cluster, name, wholes[name], victims, rng)
                outcomes.setdefault(name, Outcome()).add(found)
                seconds = round(time.monotonic() - began)
                _CONSOLE.print(f"seed {seed + number}, {name}, {seconds} s: {found}")
    _CONSOLE.print(_table(outcomes))
    raise typer.Exit(int(any(each.lost or each.more for each in outcomes.values())))


def _table(outcomes: dict[str, Outcome]) -> Table:
    table = Table("query", "runs", "executors", "workers", "rows", "lost", "more",
                  "recovery s, median", "worst", "of lost executors", "speculative")  # fmt: skip
    for name, each in outcomes.items():
        numbers = (each.runs, each.deaths["executor"], each.deaths["worker"], each.rows, each.lost,
                   each.more, *(f"{how(each.recoveries or [0.0]):.1f}" for how in (median, max)),
                   each.seen["of lost executors"], each.seen["speculative"])  # fmt: skip
        table.add_row(name, *map(str, numbers))
    return table


@app.command()
def ship(
    ways: Annotated[str, typer.Option(help="Names, with commas.")] = ",".join(WAYS),
    keep: Keep = None,
) -> None:
    """Ship the package as users do; seconds to a first result without and with compiled kernels."""
    table = Table("shipped", "home", "first result s, cold", "warm", "second query s", "kernels in")
    with place(keep) as folder:
        built = wheel(folder)
        for way in ways.split(","):
            (folder / way).mkdir()
            shipped = WAYS[way](folder / way, built)
            for home, variables in _homes(folder / way).items():
                with Cluster(folder / way / home, workers=2) as cluster:
                    cold, warm = (submit(cluster, folder / way, shipped, variables) for _ in "12")
                seconds = (cold["seconds"][0], warm["seconds"][0], warm["seconds"][1])
                caches = {worker["cache"] for worker in (*cold["workers"], *warm["workers"])}
                _CONSOLE.print(f"{way}, {home}: {cold}, {warm}")
                table.add_row(way, home, *(f"{each:.1f}" for each in seconds), "\n".join(caches))
    _CONSOLE.print(table)


def _homes(folder: Path) -> dict[str, dict[str, str]]:
    """Return settings with which executors have a home that they may write to, and one not."""
    for name in ("cache", "tmp"):
        (folder / name).mkdir()
    home, temporary = "spark.executorEnv.XDG_CACHE_HOME", "spark.executorEnv.TMPDIR"
    return {
        "writable": {home: str(folder / "cache")},
        "read-only": {home: os.devnull, temporary: str(folder / "tmp")},
    }


@app.command()
def scale(
    batches: Annotated[int, typer.Option(help="Micro-batches of a stream.")] = 12,
    rows: Annotated[int, typer.Option(help="Rows of a micro-batch.")] = 300,
    keep: Keep = None,
) -> None:
    """Kill a stream that runs on one executor, and have it go on on three."""
    with place(keep) as folder, Cluster(folder / "cluster") as cluster:
        whole = undisturbed_stream(LATE, folder / "late", batches, rows)
        found = scaled(cluster, LATE, whole, (1, 3))
        kept = [shards(each) for each in (whole, folder / "late-scaled")]
    _CONSOLE.print(f"{found}; shards {kept}")
    raise typer.Exit(int(bool(found.lost or found.more or kept[0] != kept[1])))


@app.command()
def connect(keep: Keep = None) -> None:
    """Run a batch query and a stream through a server of Spark Connect."""
    with (
        place(keep) as folder,
        Cluster(folder / "cluster", workers=2) as cluster,
        served(cluster, folder) as remote,
    ):
        _CONSOLE.print(run_job(remote))


@app.callback()
def commands() -> None:
    """What only a cluster can show."""


if __name__ == "__main__":
    app()
