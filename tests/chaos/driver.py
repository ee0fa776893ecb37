"""A streaming query as a program of its own, to be killed: ``python -m tests.chaos.driver``."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gpu_windows as gw
from gpu_windows.commits.records import OWNERS
from tests.operators.process.functions import Everything, Limits
from tests.spark_glue.stream_runs import (
    AGGREGATES,
    ASSIGNERS,
    WATERMARKS,
    outputs_of,
    over_outputs,
    windowed,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

#: A join of the rows with even numbers and those with odd ones.
JOIN = "interval join"
#: Sliding windows, whose sink is a function that reads some rows first, and results only.
FUNCTION = "function"
#: A process function with state of every kind and timers; one that some rows are broadcast to.
PROCESS, BROADCAST = "process", "broadcast"
#: Aggregates over frames of time; over frames from the first row on, and of rows.
OVER, OVER_FIRST = "over", "over first"
#: Sliding windows that are told again when late rows come.
LATE = "late rows"
#: The first rows of keys, as they change.
FIRST = "first rows"
#: Sliding windows, windows of them, and windows of these, in one query.
STAGES = "stages"
#: A pattern in the rows of keys.
MATCH = "match"
#: Sliding windows over files that tasks read.
SCAN = "scan"
#: A script with two targets; where the second one is.
SCRIPT, SECOND = "script", "second"
#: Windows without rows, which are filled.
GAPS = "gaps"
#: These, and kinds of queries of `tests.spark_glue.streams`.
QUERIES = ("sliding", "sessions", "evictor", "count window", JOIN, FUNCTION, PROCESS, BROADCAST,
           OVER, OVER_FIRST, FIRST, LATE, STAGES, MATCH, "top", SCAN, SCRIPT, GAPS)  # fmt: skip
#: Sliding windows that are told again, in tables of PostgreSQL; and the variable with its URL.
POSTGRES, POSTGRES_URL = "postgres", "CHAOS_POSTGRES"
#: Windows of what sliding windows wrote, while they do; and where it writes.
CHAIN, CHAIN_OUT = "chain", "chain-out"
#: Where the queries of a chain keep what they know.
CHECKPOINTS = {CHAIN: "chain-checkpoint"}
#: Says that the first query of a chain has come to its end.
FINISHED = "finished"
#: How many shards a query has: other ones after a death.
SHARDS = int(os.environ.get("CHAOS_SHARDS", "3"))
SCHEMA = "ts timestamp, k long, v double, text string, seq long"


def main() -> None:
    """Run a query over the files that are there, from where its checkpoint says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("query", choices=[*QUERIES, CHAIN, POSTGRES])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--settings", type=json.loads, default={}, help="JSON, more of Spark's")
    name, folder, more = vars(parser.parse_args()).values()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    settings: dict[str, bool | float | int | str | None] = {
        "spark.master": "local[2,4]",  # a task may fail three times
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.log.level": "OFF",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    spark = gw.configure(SparkSession.builder).config(map=settings | more).getOrCreate()
    follow(spark, folder) if name == CHAIN else run(spark, name, folder)
    spark.stop()


def run(spark: SparkSession, name: str, folder: Path) -> None:
    """Run a query to the end of its input."""
    if name == SCRIPT:
        source = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        rows = gw.stream(source.parquet(str(folder / "in")))
        text = TWO_TARGETS.format(out=folder / "out", second=folder / SECOND)
        script = gw.sql_script(text, src=rows).options(device="cpu", shards=SHARDS)
        trigger = {"availableNow": True}
        script.write_stream(folder / "checkpoint", trigger=trigger).awaitTermination()
        return
    if name == SCAN:
        files = gw.scan_stream(folder / "in", spark, schema=SCHEMA, max_files_per_trigger=1)
        outputs = outputs_of("sliding", files, SHARDS)
        assert "files are read in the tasks" in outputs.explain()
    else:
        source = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        outputs = outputs_named(name, *(source.parquet(str(folder / "in")) for _ in range(2)))
    sink = sink_of(name, folder)
    query = gw.write_stream(outputs, sink, folder / "checkpoint", trigger={"availableNow": True})
    query.awaitTermination()


#: Windows of rows, and rows as they come, of one stream.
TWO_TARGETS = """
CREATE TABLE src (ts TIMESTAMP_LTZ(3), k BIGINT, v DOUBLE, text STRING, seq BIGINT,
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND);
CREATE VIEW some AS SELECT * FROM src WHERE text <> 'x';
CREATE TABLE windows (k BIGINT, begins TIMESTAMP_LTZ(3), n BIGINT, total DOUBLE)
  WITH ('connector' = 'filesystem', 'path' = '{out}', 'format' = 'parquet');
CREATE TABLE large (seq BIGINT, twice DOUBLE)
  WITH ('connector' = 'filesystem', 'path' = '{second}', 'format' = 'parquet');
INSERT INTO windows SELECT k, window_start, COUNT(*), SUM(v) FROM TABLE(HOP(TABLE some,
  DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '30' SECOND)) GROUP BY k, window_start, window_end;
INSERT INTO large SELECT seq, v * 2 FROM some WHERE v > 5;
"""


def outputs_named(name: str, rows: DataFrame, again: DataFrame) -> gw.typing.Outputs:
    """Return the outputs of one of `QUERIES` over rows, which some read twice."""
    if name in OF_TWO:
        return OF_TWO[name](rows, again)
    if name in OF_ROWS:
        return over_outputs(OF_ROWS[name], rows, SHARDS)
    if name in OF_ONE:
        return OF_ONE[name](rows)
    return outputs_of("sliding" if name == FUNCTION else name, rows, SHARDS)


def sink_of(name: str, folder: Path) -> Any:
    """Return where a query writes."""
    if name == POSTGRES:
        table, url = folder.name, os.environ[POSTGRES_URL]
        return gw.PostgresSink(table, url, mode="upsert", late=f"{table}_late")
    return partial(replacing, str(folder / "out")) if name == FUNCTION else folder / "out"


def replacing(path: str, results: DataFrame, late: DataFrame, number: int) -> None:
    """Be a sink as users write it."""
    del late
    results.limit(1).collect()
    results.write.mode("overwrite").parquet(f"{path}/result/batch={number}")


def follow(spark: SparkSession, folder: Path) -> None:
    """Run windows of the windows that another process writes, until it has come to its end."""
    from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

    while not any((folder / "out" / OWNERS).glob("*/part-*")):
        time.sleep(0.1)
    rows = gw.read_output_stream(spark, folder / "out")
    watermarks = gw.WatermarkStrategy.for_monotonous_timestamps()
    windows = gw.TumblingEventTimeWindows.of("2 minutes")
    at = F.expr("window_end - INTERVAL 1 MICROSECOND").alias("at")
    keyed = gw.stream(rows).event_time(at, watermarks).key_by("k").window(windows)
    named = {"windows": gw.count(), "rows": gw.sum("n"), "highest": gw.max("top")}
    outputs = keyed.options(device="cpu", shards=SHARDS).with_outputs().aggregate(**named)
    places = folder / CHAIN_OUT, folder / CHECKPOINTS[CHAIN]
    query = gw.write_stream(outputs, *places)
    while not (folder / FINISHED).exists():
        if query.awaitTermination(1):
            return  # it has failed, and said so
    query.stop()
    gw.write_stream(outputs, *places, trigger={"availableNow": True}).awaitTermination()


def joined(left: DataFrame, right: DataFrame) -> gw.typing.Outputs:
    """Return the outputs of a join of two halves of the rows."""
    return pairs(left.where("seq % 2 = 0"), right.where("seq % 2 = 1"))


def pairs(*halves: Any) -> gw.typing.Outputs:
    """Return the outputs of a join of two inputs, which may be tables."""
    watermarks = gw.WatermarkStrategy.for_bounded_out_of_orderness("5 seconds")
    ours, its = (gw.stream(half).event_time("ts", watermarks).key_by("k") for half in halves)
    between = ours.interval_join(its).between("-10 seconds", "20 seconds")
    return between.with_outputs().select(["v", "seq"], ["text", "seq"], how="full")


def late_rows(rows: Any) -> gw.typing.Outputs:
    """Return the outputs of sliding windows that wait for late rows; a table may be given too."""
    sliding = windowed(rows, ASSIGNERS["sliding"]).allowed_lateness("1 minute")
    return sliding.with_firing_columns().with_outputs().aggregate(**AGGREGATES)


def stages(rows: Any) -> gw.typing.Outputs:
    """Return the outputs of sliding windows, of windows of them, and of windows of those."""
    sliding = gw.stream_results(late_rows(rows), "sliding", keep=True).key_by("k")
    some = sliding.window(gw.TumblingEventTimeWindows.of("30 seconds"))
    named = {"windows": gw.count(), "rows": gw.sum("n"), "highest": gw.max("top")}
    again = some.options(device="cpu", shards=SHARDS).with_outputs().aggregate(**named)
    over_all = gw.stream_results(again, "again", keep=True)
    minutes = over_all.window_all(gw.TumblingEventTimeWindows.of("1 minute"))
    return (
        minutes.options(device="cpu").with_outputs().aggregate(keys=gw.count(), rows=gw.sum("rows"))
    )


def matched(rows: DataFrame) -> gw.typing.Outputs:
    """Return the outputs of a pattern of rows that rise and fall."""
    keyed = gw.stream(rows).event_time("ts", WATERMARKS).key_by("k")
    rise = "B.v > LAST(B.v, 1) OR (LAST(B.v, 1) IS NULL AND B.v > A.v)"
    define = {"B": rise, "C": "C.v <= LAST(B.v)"}
    pattern = keyed.match_recognize("A B+ C", define, within="10 minutes", shards=SHARDS)
    return (
        pattern.arrival_order("seq")
        .with_outputs()
        .measures(a="A.seq", n="COUNT(B.v)", c="C.seq", low="MIN(text)")
    )


def first_rows(rows: DataFrame) -> gw.typing.Outputs:
    """Return the outputs of the first rows of keys, of which some get other numbers only."""
    keyed = gw.stream(rows).key_by("k")
    return keyed.with_outputs().top(
        4, ["text", "v"], columns=["seq", "v"], arrival_order=["seq"], shards=SHARDS
    )


def fill_gaps(rows: DataFrame) -> gw.typing.Outputs:
    """Return the outputs of short windows, those without rows filled for a while."""
    by_key = gw.stream(rows).event_time("ts", WATERMARKS).key_by("k")
    seconds = by_key.window_gapfill(
        gw.TumblingEventTimeWindows.of("1 second"),
        carry_forward=("total", "first"),
        interpolate="spread",
        until="15 seconds",
    )
    made = seconds.arrival_order("seq").options(device="cpu", shards=SHARDS)
    return made.with_outputs().aggregate(**AGGREGATES)


def processed(rows: DataFrame) -> gw.typing.Outputs:
    """Return the outputs of a process function with timers of event time and side outputs."""
    function = Everything(uses_processing_time=False)
    keyed = gw.stream(_numbers(rows)).event_time("ts", WATERMARKS).key_by("k")
    options: dict[str, Any] = {"arrival_order": ("v",), "device": "cpu", "shards": SHARDS}
    return keyed.with_outputs().process(function, ("v",), output=function.output, **options)


def broadcast(rows: DataFrame, limits: DataFrame) -> gw.typing.Outputs:
    """Return the outputs of a function over rows, to which some others are broadcast."""
    keyed = gw.stream(_numbers(rows)).event_time("ts", WATERMARKS).key_by("k")
    few = _numbers(limits).where("v % 20 = 7").withColumnRenamed("text", "name")
    other = gw.stream(few.withColumnRenamed("v", "limit")).event_time("ts", WATERMARKS)
    both = keyed.connect(other.broadcast())
    names: dict[str, Any] = {"output": Limits.output, "arrival_order": ("seq",)}
    return both.with_outputs().process(
        Limits(), ("v",), ("name", "limit"), **names, device="cpu", shards=SHARDS
    )


def _numbers(rows: DataFrame) -> DataFrame:
    """Return rows with a whole number as their value."""
    return rows.selectExpr("ts", "k", "text", "seq", "seq AS v")


#: Kinds of aggregates over frames.
OF_ROWS = {OVER: "time", OVER_FIRST: "from the first"}
#: What makes the outputs of other queries over one input, and over two.
OF_ONE: dict[str, Callable[[DataFrame], gw.typing.Outputs]] = {
    FIRST: first_rows,
    GAPS: fill_gaps,
    LATE: late_rows,
    POSTGRES: late_rows,
    PROCESS: processed,
    STAGES: stages,
    MATCH: matched,
}
OF_TWO: dict[str, Callable[[DataFrame, DataFrame], gw.typing.Outputs]] = {
    JOIN: joined,
    BROADCAST: broadcast,
}


if __name__ == "__main__":
    main()
