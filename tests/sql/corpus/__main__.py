"""``python -m tests.sql.corpus``: the corpus here; ``record`` asks a Flink."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

import gpu_windows as gw
from tests.sql.corpus.changed import differences, run_changed
from tests.sql.corpus.fuzz import failure_of
from tests.sql.corpus.outcomes import INTERNAL, REFUSED, RIGHT, WRONG, Outcome, outcome
from tests.sql.corpus.record import record as record_texts
from tests.sql.corpus.texts import Text, scripts, statements

app = typer.Typer(add_completion=False)


@app.callback(invoke_without_command=True)
def main(context: typer.Context) -> None:
    """Run the corpus, if no other command is given."""
    if context.invoked_subcommand is None:
        run()


def _texts(only: str) -> list[Text]:
    return [text for text in (*statements(), *scripts()) if only in text.name]


@app.command()
def record(only: Annotated[str, typer.Option(help="A part of names.")] = "") -> None:
    """Record what a Flink answers to texts."""
    errors = record_texts(_texts(only))
    console = Console(soft_wrap=True, markup=False)
    for name, error in errors.items():
        console.print(f"{name}: {error}")


@app.command()
def run(
    only: Annotated[str, typer.Option(help="A part of names.")] = "",
    details: Annotated[bool, typer.Option(help="Say why, for all but the right ones.")] = False,
    runner: Annotated[str, typer.Option(help="arrow, spark or stream.")] = "arrow",
) -> None:
    """Run texts here, and compare with what is recorded."""
    console = Console(soft_wrap=True, markup=False, highlight=False)
    if runner not in _RUNNERS:
        raise typer.BadParameter(f"a runner is one of {', '.join(_RUNNERS)}")
    outcomes = []
    for each in _RUNNERS[runner](_texts(only)):
        outcomes.append(each)
        if each.result in (WRONG, INTERNAL) or (details and each.result != RIGHT):
            console.print(f"{each.text.name}: {each.result}: {each.detail}")
    console.print(table(outcomes))
    bad = [each for each in outcomes if each.result in (WRONG, INTERNAL)]
    raise typer.Exit(1 if bad else 0)


@app.command()
def fuzz(
    seeds: Annotated[str, typer.Option(help="FIRST..LAST, the latter left out.")] = "0..1000",
    flink: Annotated[bool, typer.Option(help="Compare results with Flink's.")] = False,
) -> None:
    """Change texts by chance: each has a result, or a typed error."""
    first, last = map(int, seeds.split(".."))
    console = Console(soft_wrap=True, markup=False, highlight=False)
    failed = 0
    for seed in range(first, last):
        failure = failure_of(seed)
        if failure is not None:
            failed += 1
            console.print(f"seed {seed}: {failure}")
    for text, found in differences(run_changed(range(first, last))) if flink else ():
        console.print(f"{text.name}: {found}: {' '.join(text.sql.split())}")
    console.print(f"{last - first} seeds, {failed} failed")
    raise typer.Exit(1 if failed else 0)


def _on_arrow(texts: Iterable[Text]) -> Iterator[Outcome]:
    yield from map(outcome, texts)


def _on_spark(texts: Iterable[Text], *, streaming: bool) -> Iterator[Outcome]:
    from tests.sql.corpus.on_spark import OnSpark

    settings = {"spark.sql.shuffle.partitions": "2", "spark.driver.memory": "1g"}
    quiet = {"spark.log.level": "ERROR", "spark.ui.enabled": "false"}
    session = gw.session("corpus", config={"spark.master": "local[2]", **settings, **quiet})
    try:
        yield from map(OnSpark(session, streaming=streaming).outcome, texts)
    finally:
        session.stop()


_RUNNERS: Mapping[str, Callable[[Iterable[Text]], Iterator[Outcome]]] = {
    "arrow": _on_arrow,
    "spark": partial(_on_spark, streaming=False),
    "stream": partial(_on_spark, streaming=True),
}


def table(outcomes: list[Outcome]) -> Table:
    """Return counts of outcomes by kind."""
    rows = Table("kind", *(["n", "run", RIGHT, REFUSED, WRONG, INTERNAL]))
    kinds = dict.fromkeys(outcome.text.kind for outcome in outcomes)
    for kind in (*kinds, "all"):
        of = [each for each in outcomes if kind in ("all", each.text.kind)]
        counts = Counter(each.result for each in of)
        by_result = (counts[result] for result in (RIGHT, REFUSED, WRONG, INTERNAL))
        rows.add_row(kind, *map(str, (len(of), sum(each.ran for each in of), *by_result)))
    return rows


if __name__ == "__main__":
    app()
