"""Topic to windows to topic: once repeats are dropped, what is read is what batch gives."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import gpu_windows as gw
from gpu_windows import errors
from tests.neighbours.broker import Broker, jars
from tests.sinks.dying import NOW, Dies, fails, run
from tests.spark_glue.stream_runs import ASSIGNERS, BEGIN, SECOND, batches, outputs_of, windowed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.neighbours

TABLES = batches(3, 200)
SCHEMA = "ts timestamp, k long, v double, text string, seq long"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    try:
        jars()
    except RuntimeError as error:
        pytest.skip(str(error))
    found = Broker(tmp_path_factory.mktemp("broker")).start()
    yield found
    found.stop()


def produce(spark: SparkSession, broker: Broker, topic: str, table: pa.Table) -> None:
    """Write rows as JSON, keyed by ``k``."""
    from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

    rows = spark.createDataFrame(table)
    records = rows.select(
        F.col("k").cast("string").alias("key"), F.to_json(F.struct("*")).alias("value")
    )
    write = records.coalesce(1).write.format("kafka").option("topic", topic)
    write.option("kafka.bootstrap.servers", broker.servers).save()


def rows_of_topic(spark: SparkSession, broker: Broker, topic: str, most: int = 10_000) -> DataFrame:
    """A stream of the rows in a topic, so many records in each micro-batch."""
    from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

    source = spark.readStream.format("kafka").option("subscribe", topic)
    source = source.option("kafka.bootstrap.servers", broker.servers)
    source = source.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", most)
    return (
        source.load()
        .select(F.from_json(F.col("value").cast("string"), SCHEMA).alias("r"))
        .select("r.*")
    )


def records(spark: SparkSession, broker: Broker, topic: str) -> DataFrame:
    source = spark.read.format("kafka").option("subscribe", topic).option("includeHeaders", True)
    return source.option("kafka.bootstrap.servers", broker.servers).load()


def rows_of(found: DataFrame, like: DataFrame) -> list[Any]:
    """The rows in the values of records, of the columns of a DataFrame."""
    from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

    value = F.col("value").cast("string")
    rows = found.where("value IS NOT NULL").select(F.from_json(value, like.schema).alias("r"))
    return sorted(map(tuple, rows.select("r.*").collect()), key=repr)


def rows_in(frame: DataFrame) -> list[Any]:
    return sorted(map(tuple, frame.collect()), key=repr)


def sink(broker: Broker, topic: str, **named: Any) -> gw.KafkaSink:
    return gw.KafkaSink(topic, {"kafka.bootstrap.servers": broker.servers}, **named)


@pytest.mark.smoke
def test_topic_to_windows_to_topic(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """A micro-batch that comes again is written twice, and is there once for who drops repeats."""
    for table in TABLES:
        produce(spark, broker, "rides", table)
    outputs = outputs_of("sliding", rows_of_topic(spark, broker, "rides", 150))
    to = sink(broker, "minutes", late="late")
    for number in (1, 3):
        fails(partial(run, outputs, Dies(to, number), tmp_path / "state"), "dies here")
    run(outputs, to, tmp_path / "state")
    run(outputs, gw.ParquetSink(tmp_path / "plain"), tmp_path / "plain-state")
    wanted = gw.read_output(spark, tmp_path / "plain")
    written = records(spark, broker, "minutes")
    once = gw.drop_repeats(written)
    assert once.columns == written.columns
    assert rows_of(once, wanted) == rows_in(wanted)
    assert written.count() > once.count() > 50
    for row in once.collect():
        key = {"k", "window_start", "window_end"}
        assert {*json.loads(row.key)} == key
        assert json.loads(row.key).items() <= json.loads(row.value).items()
    late = gw.read_output(spark, tmp_path / "plain", "late")
    assert rows_of(gw.drop_repeats(records(spark, broker, "late")), late) == rows_in(late)
    assert late.count() > 0


def test_repeats_in_a_stream_are_dropped(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """The reader is a stream of its own; records of somebody else stay."""
    tables = batches(2, 60)
    for table in tables:
        produce(spark, broker, "mixed-rows", table)
    outputs = outputs_of("tumbling", rows_of_topic(spark, broker, "mixed-rows", 50))
    to = sink(broker, "mixed")
    fails(partial(run, outputs, Dies(to, 1), tmp_path / "state"), "dies here")
    run(outputs, to, tmp_path / "state")
    for _ in range(2):
        produce(spark, broker, "mixed", tables[0].slice(0, 5))
    source = spark.readStream.format("kafka").option("subscribe", "mixed")
    source = source.option("startingOffsets", "earliest").option("includeHeaders", True)
    stream = source.option("kafka.bootstrap.servers", broker.servers).load()
    with pytest.raises(errors.QueryError, match="streams need within"):
        gw.drop_repeats(stream)
    once = gw.drop_repeats(stream, "1 hour").select("topic", "key", "value")
    write = once.writeStream.option("checkpointLocation", str(tmp_path / "reader"))
    write = write.format("parquet").option("path", str(tmp_path / "once"))
    write.trigger(**NOW).start().awaitTermination()
    wanted = gw.drop_repeats(records(spark, broker, "mixed")).select("topic", "key", "value")
    assert rows_in(spark.read.parquet(str(tmp_path / "once"))) == rows_in(wanted)
    whole = records(spark, broker, "mixed")
    assert whole.count() > wanted.count() > 10
    assert wanted.where("size(map_keys(from_json(CAST(value AS string), "
                        "'map<string,string>'))) = 5").count() >= 10  # fmt: skip


def test_the_latest_values_of_keys(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """What a compacted topic keeps is the first rows of keys: those that go have no value."""
    for table in TABLES:
        produce(spark, broker, "bids", table)
    keyed = gw.stream(rows_of_topic(spark, broker, "bids", 150)).key_by("k")
    outputs = keyed.with_outputs().top(
        3, "v", columns=["seq", "v"], arrival_order=["seq"], shards=3
    )
    to = sink(broker, "best", mode="upsert")
    fails(partial(run, outputs, Dies(to, 2), tmp_path / "state"), "dies here")
    run(outputs, to, tmp_path / "state")
    kept: dict[bytes, bytes | None] = {}
    for row in records(spark, broker, "best").orderBy("partition", "offset").collect():
        kept[row.key] = row.value
    found = [json.loads(value) for value in kept.values() if value is not None]
    assert {*found[0]} == {"k", "seq", "v", "row_number"}
    values: dict[int, list[float]] = {}
    for table in TABLES:
        for row in table.to_pylist():
            values.setdefault(row["k"], []).append(row["v"])
    wanted = {(k, i, v) for k, vs in values.items() for i, v in enumerate(sorted(vs)[::-1][:3], 1)}
    assert {(r["k"], r["row_number"], r["v"]) for r in found} == wanted


def test_an_idle_partition_and_the_death_of_the_broker(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """A partition without rows holds nothing up; the query outlives a broker that is killed."""
    topic, servers = "steps", broker.servers
    tables = [of_one_key(table, number) for number, table in enumerate(TABLES[:2])]
    produce(spark, broker, topic, tables[0])
    outputs = (
        windowed(rows_of_topic(spark, broker, topic), ASSIGNERS["tumbling"])
        .with_outputs()
        .aggregate(n=gw.count(), total=gw.sum("v"))
    )
    query = gw.write_stream(outputs, sink(broker, "counts"), tmp_path / "state")
    try:
        query.processAllAvailable()
        broker.stop(kill=True)
        broker.start()
        assert broker.servers == servers
        produce(spark, broker, topic, tables[1])
        query.processAllAvailable()
    finally:
        query.stop()
    run(outputs, sink(broker, "counts"), tmp_path / "state")
    run(outputs, gw.ParquetSink(tmp_path / "plain"), tmp_path / "plain-state")
    wanted = gw.read_output(spark, tmp_path / "plain")
    assert rows_of(gw.drop_repeats(records(spark, broker, "counts")), wanted) == rows_in(wanted)
    assert wanted.count() >= 4
    assert len({row.partition for row in records(spark, broker, topic).collect()}) == 1


def of_one_key(table: pa.Table, number: int) -> pa.Table:
    """Rows of one key, so that the other partition stays empty, of which none is late."""
    begin = pa.scalar(BEGIN + number * 60 * SECOND).cast(pa.timestamp("us", "UTC"))
    timely = table.filter(pc.greater_equal(table["ts"], begin))
    return timely.set_column(1, "k", pa.array([7] * len(timely)))


def test_what_a_sink_refuses() -> None:
    with pytest.raises(errors.QueryError, match=r"name kafka\.bootstrap\.servers, got none"):
        gw.KafkaSink("t", {})
    servers = {"kafka.bootstrap.servers": "127.0.0.1:9"}
    with pytest.raises(errors.QueryError, match="a place of its own, got t, t"):
        gw.KafkaSink("t", servers, late="t")
    with pytest.raises(errors.QueryError, match="not among its options"):
        gw.KafkaSink("t", {**servers, "topic": "t"})
