"""``python -m tests.conformance PATHS``: recorded runs of Flink again, on any runner."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tests.conformance.command import Request, run_request

app = typer.Typer(add_completion=False)


class RunnerName(StrEnum):
    """Where scenarios are run."""

    LOCAL = "local"
    BATCH = "batch"
    STREAMING = "streaming"
    STREAMING_QUERY = "streaming-query"


class EngineName(StrEnum):
    """What scenarios are run by: the planner's choice, or the reference operator."""

    KERNELS = "kernels"
    REFERENCE = "reference"


class DeviceName(StrEnum):
    """What kernels are run on."""

    CPU = "cpu"
    CUDA = "cuda"


class PartialsName(StrEnum):
    """Who makes partial aggregates on Spark batch."""

    AUTO = "auto"
    KERNELS = "kernels"
    SPARK = "spark"


@app.command()
def main(
    paths: Annotated[
        list[Path],
        typer.Argument(help="Scenario files, or folders of *.json files.", exists=True),
    ],
    runner: Annotated[RunnerName, typer.Option(help="Where to run.")] = RunnerName.LOCAL,
    engine: Annotated[
        EngineName, typer.Option(help="What the planner chooses, or the reference operator.")
    ] = EngineName.KERNELS,
    device: Annotated[DeviceName, typer.Option(help="What kernels run on.")] = DeviceName.CPU,
    partials: Annotated[
        PartialsName, typer.Option(help="Who makes partials on Spark batch.")
    ] = PartialsName.AUTO,
    json: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write every result to a file.")
    ] = None,
    sql: Annotated[
        bool, typer.Option("--sql", help="Ask statements by their SQL, through gpu_windows.sql.")
    ] = False,
) -> None:
    """Replay scenarios recorded from Apache Flink and compare, field by field.

    Exit status: 0 if none failed, 1 if one failed, 2 on bad input.
    """
    request = Request(
        paths=tuple(paths),
        runner=runner.value,
        engine="reference" if engine is EngineName.REFERENCE else "auto",
        device=device.value,
        partials=partials.value,
        json=json,
        by_text=sql,
    )
    raise typer.Exit(run_request(request))


if __name__ == "__main__":
    app()
