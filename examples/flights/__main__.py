"""``python -m examples.flights``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from gpu_windows.errors import GpuWindowsError

app = typer.Typer(add_completion=False)


class ChoiceName(StrEnum):
    """What kernels are run on, or the choice of the tasks themselves."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"


@app.command()
def main(
    output: Annotated[
        Path | None,
        typer.Option(
            help="The picture, whose name says the format; with --streaming a folder.",
            show_default="gpu-windows-demo.png, gpu-windows-demo-streaming",
        ),
    ] = None,
    device: Annotated[ChoiceName, typer.Option(help="What kernels run on.")] = ChoiceName.AUTO,
    streaming: Annotated[
        bool, typer.Option("--streaming", help="Replay flights as a stream, with early results.")
    ] = False,
) -> None:
    """Put a year of flights into windows and joins on Spark; show tables and draw a picture."""
    try:
        from examples.flights import overview
        from examples.flights import streaming as stream

        if streaming:
            stream.run(stream.OUTPUT if output is None else output, device=device.value)
        else:
            overview.run(overview.PICTURE if output is None else output, device=device.value)
    except (GpuWindowsError, ImportError) as error:
        Console(stderr=True).print(f"[red]The demo cannot run:[/red] {error}", soft_wrap=True)
        raise typer.Exit(1) from None


if __name__ == "__main__":
    app()
