"""``python -m tests.simulation --seeds A..B``: streaming queries, cut and crashing, from seeds."""

from __future__ import annotations

import multiprocessing
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from functools import partial
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from gpu_windows.kernels.backend import why_no_cuda
from gpu_windows.vocabulary.options import Device
from tests.ptx.installed import install_for_good, installed
from tests.simulation.trial import Trial, try_seed

#: Seeds that a process is given at once.
_CHUNK = 20
#: After so many seeds a line says how far it is.
_LINE = 1_000


app = typer.Typer()


@app.command()
def main(
    seeds: Annotated[str, typer.Option(help="A..B: from A on, without B.")] = "0..1000",
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 2,
    device: Annotated[
        str,
        typer.Option(help="cpu; cuda; ptx: the PTX of CUDA kernels, on this CPU."),
    ] = "cpu",
    most: Annotated[int, typer.Option(help="End after so many failures.")] = 10,
    only: Annotated[
        str, typer.Option(help='Of seeds those with this word in their strategy: "process".')
    ] = "",
) -> None:
    """Run streaming queries in process: cuts, crashes and shards must not change what they give."""
    first, last = _range(seeds)
    if device not in ("cpu", "cuda", "ptx"):
        raise typer.BadParameter(f"device is cpu, cuda or ptx, got {device}")
    if device == "cuda" and (reason := why_no_cuda()) is not None:
        raise typer.BadParameter(f"cuda cannot be used: {reason}")
    console, began = Console(soft_wrap=True, highlight=False), time.monotonic()
    strategies, facts, failed, done = Counter[str](), Counter[str](), 0, 0
    for trial in trials(range(first, last), jobs, only, device=device):
        if trial.is_left_out:
            continue
        done += 1
        strategies[trial.strategy] += 1
        facts.update(trial.facts)
        if trial.failure is not None:
            failed += 1
            console.print(trial.failure, markup=False)
        if done % _LINE == 0:
            rate = 60 * done / (time.monotonic() - began)
            console.print(f"{done} seeds, {rate:.0f} a minute, {failed} failed")
        if failed >= most:
            break
    console.print(_summary(done, failed, strategies, facts))
    raise typer.Exit(1 if failed else 0)


def _range(seeds: str) -> tuple[int, int]:
    first, dots, last = seeds.partition("..")
    if not (dots and first.isdigit() and last.isdigit() and int(first) < int(last)):
        raise typer.BadParameter(f"seeds are A..B, numbers that rise, got {seeds}")
    return int(first), int(last)


def trials(seeds: range, jobs: int, only: str = "", *, device: str = "cpu") -> Iterator[Trial]:
    """Yield what comes of every seed, in their order.

    Parameters
    ----------
    seeds : range
    jobs : int
        Processes; with one it is this.
    only : str
        A word of the strategies wanted.
    device : {"cpu", "cuda", "ptx"}
        What kernels run on; ptx: the PTX of CUDA kernels, on this CPU (`tests.ptx`).
    """
    on_ptx = device == "ptx"
    on: Device = "cpu" if device == "cpu" else "cuda"
    if jobs == 1:
        with installed() if on_ptx else nullcontext():
            yield from (try_seed(seed, on, only=only) for seed in seeds)
        return
    context = multiprocessing.get_context("spawn")
    prepare = install_for_good if on_ptx else None
    with ProcessPoolExecutor(jobs, context, prepare) as pool:
        try:
            each = partial(try_seed, device=on, only=only)
            yield from pool.map(each, seeds, chunksize=_CHUNK)
        finally:
            pool.shutdown(cancel_futures=True)


def _summary(done: int, failed: int, strategies: Counter[str], facts: Counter[str]) -> Table:
    table = Table("what", "how many", title=f"{done} seeds, {failed} failed")
    for name, count in [*sorted(strategies.items()), *facts.items()]:
        table.add_row(name, str(count))
    return table


if __name__ == "__main__":
    app()
