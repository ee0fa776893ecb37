"""The command ``gpu-windows``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="gpu-windows",
    help="Apache Flink's windows for PySpark, on CUDA and CPU kernels.",
    no_args_is_help=True,
    add_completion=False,
)

checkpoint_app = typer.Typer(
    help="List the commits of a streaming query's checkpoint, go back to one, or copy one.",
    no_args_is_help=True,
)
app.add_typer(checkpoint_app, name="checkpoint")


class SqlRunnerName(StrEnum):
    """Where queries in SQL are run."""

    LOCAL = "local"
    SPARK = "spark"


@app.callback()
def main() -> None:
    """Apache Flink's windows for PySpark, on CUDA and CPU kernels."""


@app.command()
def doctor(
    spark: Annotated[
        bool, typer.Option(help="Start Spark and look into its Python workers (some seconds).")
    ] = True,
    json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
) -> None:
    """Report what is installed, what would run where, and how to mend what is missing.

    Exit status: 0, or 1 if a check failed.
    """
    from gpu_windows.doctor import run

    raise typer.Exit(run(spark=spark, json=json))


@app.command()
def sql(
    file: Annotated[
        str | None, typer.Argument(help="A file with the query; - is the standard input.")
    ] = None,
    query: Annotated[str | None, typer.Option(metavar="TEXT", help="The query itself.")] = None,
    script: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="A script instead: CREATE TABLE, INSERT; - is input."),
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Run the INSERT of a script as a stream, on Spark."),
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=PATH", help="A table: a file of Parquet or CSV, or a folder; repeated."
        ),
    ] = None,
    event_time: Annotated[
        list[str] | None,
        typer.Option(metavar="[NAME=]COLUMN", help="The time of all tables, or of one; repeated."),
    ] = None,
    time_zone: Annotated[
        str | None,
        typer.Option(metavar="ZONE", help="Makes instants of times without a zone: Europe/Zurich."),
    ] = None,
    runner: Annotated[SqlRunnerName, typer.Option(help="Where to run.")] = SqlRunnerName.LOCAL,
    rows: Annotated[int, typer.Option(min=0, help="Most rows that are shown.")] = 20,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write all results, as Parquet.")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show the query in Python and its plan; run nothing.")
    ] = False,
) -> None:
    """Ask files a query in Flink's SQL: windows, OVER, top-N, joins in time; or run a script.

    Exit status: 0, or 2 on bad input.
    """
    from gpu_windows.sql.command import Request, run

    request = Request(
        query=query,
        file=file,
        script=script,
        checkpoint=checkpoint,
        tables=table or [],
        event_times=event_time or [],
        time_zone=time_zone,
        on_spark=runner is SqlRunnerName.SPARK,
        rows=rows,
        output=output,
        explain=explain,
    )
    raise typer.Exit(run(request))


@app.command()
def state(
    checkpoint: Annotated[
        str,
        typer.Argument(help="Path or URL of the checkpoint of a streaming query, running or not."),
    ],
    stage: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="An earlier stage of the query.", show_default="the last stage"
        ),
    ] = None,
    details: Annotated[
        bool, typer.Option("--details", help="Show every shard and every bucket too.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
) -> None:
    """Show what the checkpoint of a streaming query holds; nothing in it is changed.

    Exit status: 0, or 2 if it cannot be read.
    """
    from gpu_windows.checkpoints.commands import run_state

    raise typer.Exit(run_state(checkpoint, stage=stage, details=details, json=json))


@checkpoint_app.command("list")
def list_commits(
    path: Annotated[
        str, typer.Argument(help="Path or URL of the checkpoint, its query running or not.")
    ],
    json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
) -> None:
    """Show the commits that a checkpoint keeps; nothing in it is changed.

    Exit status: 0, or 2 if it cannot be read.
    """
    from gpu_windows.checkpoints.commands import run_list

    raise typer.Exit(run_list(path, json=json))


@checkpoint_app.command("back")
def go_back(
    path: Annotated[
        str, typer.Argument(help="Path or URL of the checkpoint; stop its query first.")
    ],
    sequence: Annotated[int, typer.Argument(help="Of the commit after which it resumes.")],
    output: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Withdraw later results from the path of results."),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Let later results be delivered again to the sink.")
    ] = False,
) -> None:
    """Take a checkpoint back, so that its query resumes after an earlier commit.

    Exit status: 0, or 2 if it is refused.
    """
    from gpu_windows.checkpoints.commands import run_back

    raise typer.Exit(run_back(path, sequence, output=output, again=again))


@checkpoint_app.command("copy")
def copy(
    path: Annotated[
        str, typer.Argument(help="Path or URL of the checkpoint, its query running or not.")
    ],
    sequence: Annotated[int, typer.Argument(help="Of the commit after which the copy resumes.")],
    to: Annotated[str, typer.Argument(help="Path or URL of the copy: a new or empty folder.")],
) -> None:
    """Copy a checkpoint as it was after a commit, for a query of its own.

    Exit status: 0, or 2 if it is refused.
    """
    from gpu_windows.checkpoints.commands import run_copy

    raise typer.Exit(run_copy(path, sequence, to))


@app.command()
def warm(
    json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
) -> None:
    """Compile every kernel into the cache now, so that no query waits for it.

    Kernels of the CPU, and those of CUDA for the device if there is one. Run it once on each kind
    of machine, or where GPU_WINDOWS_CACHE_DIR names a folder that machines of a kind share.
    """
    from gpu_windows.warm import run

    raise typer.Exit(run(as_json=json))


if __name__ == "__main__":
    app()
