"""The command line: ``python -m benchmarks NAME``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from benchmarks import suite
from benchmarks.contest import PEERS, Benchmark, Window
from benchmarks.data import default_root
from benchmarks.equality import ResultMismatchError
from benchmarks.report import Report
from benchmarks.runner import run
from benchmarks.stage import Resources
from gpu_windows.errors import GpuWindowsError

app = typer.Typer(add_completion=False, rich_markup_mode="rich")
_QUICK_ROWS, _QUICK_KEYS = 20_000, 20


@app.command()
def main(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(suite.names())}.")],
    *,
    rows: Annotated[
        int | None,
        typer.Option(
            help="Rows of the data set, or of a micro-batch; default: the benchmark's own.", min=1
        ),
    ] = None,
    keys: Annotated[
        int | None, typer.Option(help="Distinct keys; default: the benchmark's own.", min=1)
    ] = None,
    peers: Annotated[
        str | None, typer.Option(help=f"Of {','.join(PEERS)}; default: the benchmark's own choice.")
    ] = None,
    without: Annotated[str, typer.Option(help="Contestants to leave out, by name.")] = "",
    only: Annotated[
        str, typer.Option(help='Contestants to take alone, by words of names: "slices all,join".')
    ] = "",
    size: Annotated[str | None, typer.Option(help='Such as "60 minutes".')] = None,
    slide: Annotated[str | None, typer.Option(help='Such as "1 minute".')] = None,
    shuffled: Annotated[
        bool, typer.Option("--shuffled", help="Rows in random order, not in order of time.")
    ] = False,
    repeats: Annotated[
        int | None, typer.Option(help="Runs that count; default: the benchmark's own.", min=1)
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(help="How long, of benchmarks at a steady rate.", min=0.1)
    ] = None,
    batches: Annotated[
        int | None,
        typer.Option(help="Micro-batches; default: the benchmark's own; for stream_growth.", min=1),
    ] = None,
    json: Annotated[
        Path | None, typer.Option(help="File for the measurements, or a folder that exists.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="File for the picture.")] = None,
    data: Annotated[
        Path | None, typer.Option(help="Where data sets are cached; default: the user's cache.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Few rows, one run: does it work at all?")
    ] = False,
) -> None:
    """Measure gpu_windows and its peers in turns on the same data, if their results are equal."""
    console = Console()
    try:
        benchmark = suite.load(name)
        data_set = benchmark.data(rows or benchmark.rows, keys or benchmark.keys, shuffled=shuffled)
        if batches is not None:
            data_set = data_set.limited(batches)
        if quick:
            data_set = replace(data_set, rows=_QUICK_ROWS, keys=_QUICK_KEYS)
            benchmark = replace(benchmark, warm_seconds=0.0)
        with Resources(data_set, data or default_root()) as resources, console.status("") as status:
            report = run(
                benchmark,
                resources,
                Window.of(size or benchmark.size, slide or benchmark.slide),
                peers=_peers(benchmark, peers, console),
                without=_names(without, (*benchmark.contestants, *benchmark.names)),
                only=tuple(filter(None, map(str.strip, only.split(",")))),
                repeats=1 if quick else _repeats(benchmark, repeats, minutes),
                tell=lambda text: status.update(escape(text)),
            )
    except (ResultMismatchError, GpuWindowsError, ValueError) as error:
        console.print(f"[bold red]{type(error).__name__}[/]", escape(str(error)))
        raise typer.Exit(1) from error
    _deliver(report, console, json=json, plot=plot)


def _deliver(report: Report, console: Console, *, json: Path | None, plot: Path | None) -> None:
    report.show(console)
    if json is not None:
        console.print(f"measurements: {escape(str(report.write_json(json)))}")
    if plot is not None:
        from benchmarks.plot import save

        save(report, plot)
        console.print(f"picture: {escape(str(plot))}")


def _repeats(benchmark: Benchmark, repeats: int | None, minutes: float | None) -> int | None:
    """Return the number of runs that was asked for, if any."""
    if minutes is None:
        return repeats
    if benchmark.period is None:
        message = f"{benchmark.name} has no steady rate: give --repeats, not --minutes"
        raise ValueError(message)
    return max(1, round(60 * minutes / benchmark.period))


def _peers(benchmark: Benchmark, text: str | None, console: Console) -> tuple[str, ...]:
    if text is None:
        return benchmark.peers
    peers = _names(text, PEERS)
    absent = [peer for peer in peers if peer not in benchmark.names]
    if absent:
        console.print(f"{benchmark.name} has no contestant {', '.join(absent)}: left out")
    return peers


def _names(text: str, allowed: tuple[str, ...]) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    unknown = [name for name in names if name not in allowed]
    if unknown:
        message = f"a contestant must be one of {', '.join(allowed)}, got {', '.join(unknown)}"
        raise ValueError(message)
    return names
