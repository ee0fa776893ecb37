"""A query into a table or a topic as a program of its own, to be killed.

``python -m tests.neighbours.driver SINK FOLDER``
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gpu_windows as gw
from tests.chaos.driver import SCHEMA
from tests.neighbours.session import CATALOG, session
from tests.spark_glue.stream_runs import ASSIGNERS, windowed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Sinks, by name: tables in both modes, and a topic.
SINKS = ("delta append", "delta upsert", "iceberg append", "iceberg upsert", "kafka")
#: Where a folder says what clients of its broker are told; the topic of results is named by it.
SERVERS, TOPIC = "servers", "topic"


def main() -> None:
    """Run a query over the files that are there, from where its checkpoint says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("sink", choices=SINKS)
    parser.add_argument("folder", type=Path)
    name, folder = vars(parser.parse_args()).values()
    spark = session(folder / "spark", spark__log__level="OFF")
    source = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    outputs = early(source.parquet(str(folder / "in")))
    now = {"availableNow": True}
    query = gw.write_stream(outputs, sink_of(name, folder), folder / "checkpoint", trigger=now)
    query.awaitTermination()
    spark.stop()


def early(source: Any) -> gw.typing.Outputs:
    """Windows that fire every 15 s of event time and at their end."""
    trigger = gw.ContinuousEventTimeTrigger.of("15 seconds")
    made = windowed(source, ASSIGNERS["continuous"]).trigger(trigger).with_firing_columns()
    return made.with_outputs().aggregate(n=gw.count(), total=gw.sum("v"), seen=gw.max("seq"))


def sink_of(name: str, folder: Path) -> gw.Sink:
    """Return a sink of ``SINKS`` into a folder, or the topic that it names."""
    kind, _, mode = name.partition(" ")
    if kind == "kafka":
        servers = {"kafka.bootstrap.servers": (folder / SERVERS).read_text()}
        return gw.KafkaSink((folder / TOPIC).read_text(), servers)
    made = gw.DeltaSink if kind == "delta" else gw.IcebergSink
    tables = {"delta": str(folder / "table"), "iceberg": f"{CATALOG}.db.results"}
    return made(tables[kind], mode=mode)  # type: ignore[arg-type]


def rows_written(spark: SparkSession, name: str, folder: Path) -> list[Any]:
    """Return what a reader of the table or the topic sees, in some order."""
    from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

    kind = name.partition(" ")[0]
    if kind == "kafka":
        source = spark.read.format("kafka").option("includeHeaders", True)
        source = source.option("kafka.bootstrap.servers", (folder / SERVERS).read_text())
        once = gw.drop_repeats(source.option("subscribe", (folder / TOPIC).read_text()).load())
        rows = once.select(F.col("value").cast("string"))
    elif kind == "delta":
        rows = spark.read.format("delta").load(str(folder / "table"))
    else:  # by its path, for the catalog is of the driver that wrote
        rows = spark.read.format("iceberg").load(str(folder / "spark/iceberg/db/results"))
    return sorted(map(tuple, rows.collect()), key=repr)


if __name__ == "__main__":
    main()
