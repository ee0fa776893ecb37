"""``python -m tests.column_types --seeds A..B``: queries over random schemas, against Spark."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Annotated

import typer
from pyspark.sql import SparkSession
from rich.console import Console

from tests.column_types.against_spark import Runner, try_seed
from tests.column_types.runners import here, on_a_shard, on_spark

#: Every so many seeds run on Spark, too.
_ON_SPARK = 5

app = typer.Typer()


@app.command()
def main(
    seeds: Annotated[str, typer.Option(help="A..B: from A on, without B.")] = "0..1000",
    most: Annotated[int, typer.Option(help="End after so many differences.")] = 10,
) -> None:
    """Compare queries over random schemas with Spark's own of the same rows."""
    first, last = map(int, seeds.split(".."))
    console, kinds, wrong = Console(soft_wrap=True, highlight=False), Counter[str](), 0
    spark = session()
    logging.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL)  # of overflows
    for seed in range(first, last):
        runners: dict[str, Runner] = {"local": here, "a shard": on_a_shard}
        if seed % _ON_SPARK == 0:
            runners["Spark"] = on_spark
        trial = try_seed(seed, spark, runners)
        kinds[trial.kind] += 1
        if trial.wrong:
            wrong += 1
            console.print(f"{seed} {trial.kind}: {trial.wrong}\n    {trial.schema}")
        if wrong >= most:
            break
    console.print(f"{sum(kinds.values())} schemas, {wrong} differ: {dict(kinds)}")
    raise typer.Exit(bool(wrong))


def session() -> SparkSession:
    """Return a session for small queries, in UTC."""
    settings: dict[str, bool | float | int | str | None] = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.log.level": "OFF",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.codegen.wholeStage": "false",  # compiling takes longer than these rows
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master("local[2]").config(map=settings)
    found: SparkSession = builder.getOrCreate()
    return found


if __name__ == "__main__":
    app()
