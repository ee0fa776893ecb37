"""``python -m tests.oracle``: recorded runs again, and new ones, on a real Apache Flink."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from gpu_windows.vocabulary.options import Engine
from tests.conformance.command import Request, run_request
from tests.oracle.compare import agree, compare, table_of
from tests.oracle.expressions.tables import TABLES
from tests.oracle.families import FAMILIES, scenario
from tests.oracle.scenarios import write

GOLDEN = Path(__file__).parent.parent / "golden"
REPLAY = Path(__file__).with_name("replay.sh")
EVALUATE = Path(__file__).with_name("evaluate.sh")
VALUES = Path(__file__).parent.parent / "sql" / "recorded_values.json"

app = typer.Typer(help=__doc__, no_args_is_help=True)


def answer(out: Path, paths: Sequence[Path], *, check: bool = False) -> int:
    """Have Flink complete scenarios; return the exit status of ``replay.sh``."""
    flags = ["--check"] if check else []
    return subprocess.run([REPLAY, *flags, out, *paths], check=False).returncode


@app.command()
def rerun(
    families: Annotated[list[str] | None, typer.Argument(help="Of tests/golden; all.")] = None,
    check: Annotated[bool, typer.Option(help="Compare with a plain pipeline too.")] = False,
) -> None:
    """Run recorded scenarios again, and compare what Flink makes of them with what is recorded."""
    chosen = families or sorted({path.parent.name for path in GOLDEN.glob("*/*.json")})
    console = Console()
    with tempfile.TemporaryDirectory(prefix="gpu-windows-oracle-") as name:
        status = answer(Path(name), [GOLDEN / family for family in chosen], check=check)
        compared = list(compare(GOLDEN, Path(name), chosen))
    console.print(table_of(compared))
    for each in compared:
        if each.counts["same results"] == 0:
            differing = "missing" if each.fields is None else ", ".join(each.fields)
            console.print(f"{each.family}/{each.name}: {differing}")
    raise typer.Exit(status or (0 if agree(compared) else 1))


@app.command()
def fuzz(
    seed: Annotated[int, typer.Option(help="Scenarios depend on it, their number, and ONLY.")] = 0,
    count: Annotated[int, typer.Option(min=1, help="How many scenarios.")] = 200,
    only: Annotated[str, typer.Option(help=f"Of {', '.join(FAMILIES)}; with commas.")] = "",
    runners: Annotated[str, typer.Option(help="Of local, streaming; with commas.")] = "local",
    keep: Annotated[Path | None, typer.Option(help="Folder for what Flink answered.")] = None,
    sql: Annotated[bool, typer.Option("--sql", help="Ask ours by the statements' SQL.")] = False,
) -> None:
    """Ask Flink new questions, and compare our answers with its: both engines, each runner."""
    names = tuple(filter(None, only.split(",")))
    if unknown := set(names) - set(FAMILIES):
        raise typer.BadParameter(f"unknown: {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory(prefix="gpu-windows-oracle-") as name:
        asked, answered = Path(name) / "asked", keep or Path(name) / "answered"
        write((scenario(seed, index, names) for index in range(count)), asked)
        statuses = [answer(answered, [asked])]
        engines: tuple[Engine, ...] = ("auto", "reference")
        for runner in runners.split(","):
            statuses += [_conformance(answered, runner, each, by_text=sql) for each in engines]
    raise typer.Exit(max(statuses))


def _conformance(path: Path, runner: str, engine: Engine, *, by_text: bool) -> int:
    """Run ours on what Flink answered; return its exit status."""
    how = Request((path,), runner, engine, "cpu", "auto", None, by_text=by_text)
    return run_request(how)


@app.command()
def record(
    out: Annotated[Path, typer.Argument(help="Folder for OUT/<family>/<name>.json.")],
    paths: Annotated[list[Path], typer.Argument(help="Scenario files, and folders of them.")],
    check: Annotated[bool, typer.Option(help="Compare with a plain pipeline too.")] = False,
) -> None:
    """Have Flink complete scenario files."""
    raise typer.Exit(answer(out, paths, check=check))


@app.command()
def expressions(
    out: Annotated[Path, typer.Argument(help="File for the values.")] = VALUES,
    only: Annotated[str, typer.Option(help=f"Of {', '.join(TABLES)}; with commas.")] = "",
) -> None:
    """Evaluate the scalar expressions of `tests.oracle.expressions` on Flink."""
    names = list(filter(None, only.split(","))) or list(TABLES)
    if unknown := set(names) - set(TABLES):
        raise typer.BadParameter(f"unknown: {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory(prefix="gpu-windows-oracle-") as folder:
        questions = Path(folder) / "questions.json"
        questions.write_text(json.dumps({name: TABLES[name].question for name in names}))
        status = subprocess.run([EVALUATE, questions, out], check=False).returncode
    raise typer.Exit(status)


if __name__ == "__main__":
    app()
