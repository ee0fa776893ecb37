"""``python -m tests.scans --seeds A..B``: folders from seeds, read in splits, and by Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from tests.scans.trial import try_local

_LINE = 250


def main(
    seeds: Annotated[str, typer.Option(help="A..B: from A on, without B.")] = "0..1000",
    spark: Annotated[bool, typer.Option(help="Compare with spark.read.parquet.")] = False,
) -> None:
    """Try seeds, and end with 1 if one differs."""
    first, last = map(int, seeds.split(".."))
    counts: Counter[str] = Counter()
    attempt = _on_spark() if spark else _locally
    for seed in range(first, last):
        with TemporaryDirectory() as folder:
            outcome = attempt(seed, Path(folder) / "rows")
        counts[outcome if len(outcome) < 40 else "different"] += 1
        if len(outcome) >= 40:
            typer.echo(f"seed {seed}: {outcome}")
        if (seed + 1 - first) % _LINE == 0:
            typer.echo(dict(counts))
    typer.echo(dict(counts))
    if counts["different"]:
        raise typer.Exit(1)


def _locally(seed: int, path: Path) -> str:
    return try_local(seed, path) or "same"


def _on_spark() -> Callable[[int, Path], str]:
    import gpu_windows as gw
    from tests.spark_glue.scans.trial import try_on_spark

    session = gw.session()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.sparkContext.setLogLevel("OFF")
    return lambda seed, path: try_on_spark(seed, path, session)


if __name__ == "__main__":
    typer.run(main)
