"""``python -m tests.rapids``: what the RAPIDS Accelerator would run of our plans on a GPU."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import pyspark
import typer
from rich.console import Console

from tests.rapids.markdown import report
from tests.rapids.plan import Node, whole_plan
from tests.rapids.queries import QUERIES, TRIALS, read_input, write_input
from tests.rapids.session import ARTIFACT, Report, explaining

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PAGE = Path(__file__).parents[2] / "docs" / "rapids_report.md"

Asked = Mapping[str, Callable[["DataFrame"], "DataFrame"]]


def plans(log: Report, path: Path, asked: Asked, console: Console) -> dict[str, tuple[Node, ...]]:
    """Run DataFrames of the rows of a file; return what is said of each."""
    told = {}
    for name, query in asked.items():
        text, rows = log.of(query(read_input(log.spark, path)))
        console.print(f"{name}: {rows} rows")
        told[name] = whole_plan(text)
    return told


def main(
    artifact: Annotated[str, typer.Option(help="Of Maven: group:name:version.")] = ARTIFACT,
    setting: Annotated[list[str] | None, typer.Option(help="Of Spark: NAME=VALUE.")] = None,
    out: Annotated[Path, typer.Option(help="Where to write the page.")] = _PAGE,
    check: Annotated[bool, typer.Option(help="Compare with the page instead.")] = False,
) -> None:
    """Run our batch queries in explain-only mode, and write what is said of their plans."""
    console = Console(stderr=True)
    settings = dict(each.split("=", 1) for each in setting or ())
    with tempfile.TemporaryDirectory(prefix="gpu-windows-rapids-") as name:
        path = write_input(Path(name))
        with explaining(Path(name), artifact, settings) as log:
            of_queries = plans(log, path, QUERIES, console)
            of_trials = plans(log, path, TRIALS, console)
    page = report(of_queries, of_trials, artifact=artifact, pyspark=pyspark.__version__)
    if not check:
        out.write_text(page)
    elif page != out.read_text():
        console.print(f"{out} says something else")
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
