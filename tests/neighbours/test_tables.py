"""Tables of Delta Lake and Iceberg hold what batch gives, whatever dies and whoever writes."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it
from pyspark.sql.pandas.types import from_arrow_schema

import gpu_windows as gw
from gpu_windows import errors
from gpu_windows.planning.own_columns import REASON
from gpu_windows.sinks.tables.expired_history import LAST
from gpu_windows.sinks.tables.formats import DeltaTables
from gpu_windows.sinks.tables.sink import TableSink
from tests.neighbours.session import CATALOG
from tests.sinks.dying import Dies, fails, run
from tests.spark_glue.stream_runs import (
    ASSIGNERS,
    WATERMARKS,
    batches,
    expected,
    files,
    outputs_of,
    streamed,
    windowed,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.neighbours

TABLES = batches(3, 200)


@dataclass(frozen=True)
class Lake:
    """Tables of a format, and how they are named."""

    kind: str
    folder: Path
    sinks: ClassVar[dict[str, type[TableSink]]] = {"delta": gw.DeltaSink, "iceberg": gw.IcebergSink}

    def table(self, name: str) -> str:
        """What a sink is given."""
        if self.kind == "delta":
            return f"{self.folder}/{name}"
        return f"{CATALOG}.db.{name}_{abs(hash(self.folder))}"

    def sql(self, name: str) -> str:
        """What SQL calls it."""
        return f"delta.`{self.table(name)}`" if self.kind == "delta" else self.table(name)

    def sink(self, name: str = "result", **named: Any) -> TableSink:
        return self.sinks[self.kind](self.table(name), **named)


@pytest.fixture(params=["delta", "iceberg"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    files(tmp_path / "in", TABLES)
    return Lake(request.param, tmp_path)


def fresh(spark: SparkSession, table: str) -> DataFrame:
    """Read a table, of which Iceberg's catalog may hold an older state."""
    if not table.startswith("delta"):
        spark.sql(f"REFRESH TABLE {table}")
    return spark.table(table)


def rows_in(spark: SparkSession, table: str) -> list[Any]:
    return sorted(map(tuple, fresh(spark, table).collect()), key=repr)


def wanted_of(outputs: gw.typing.Outputs) -> list[Any]:
    """What an operator gives of the same micro-batches."""
    results = expected(outputs, TABLES)[0]
    for name in ("window_start", "window_end"):
        at = results.schema.get_field_index(name)
        results = results.set_column(at, name, results[name].cast(pa.timestamp("us")))
    return sorted((tuple(row.values()) for row in results.to_pylist()), key=repr)


def continuous(source: Any) -> gw.typing.Outputs:
    """Windows that fire every 15 s of event time and at their end."""
    trigger = gw.ContinuousEventTimeTrigger.of("15 seconds")
    made = windowed(source, ASSIGNERS["continuous"]).trigger(trigger).with_firing_columns()
    return made.with_outputs().aggregate(n=gw.count(), total=gw.sum("v"))


def last_firings(rows: list[Any]) -> list[Any]:
    """Of (k, start, end, firing, ...) the last of each window."""
    found: dict[Any, Any] = {}
    for row in sorted(rows, key=lambda row: row[3]):
        found[row[:3]] = row
    return sorted(found.values(), key=repr)


@pytest.mark.smoke
def test_results_are_added_once(spark: SparkSession, lake: Lake) -> None:
    """A micro-batch that was written and comes again changes nothing; late rows are there too."""
    outputs = outputs_of("sliding", streamed(spark, lake.folder / "in"))
    wanted = wanted_of(outputs)
    sink, state = lake.sink(late=lake.table("late")), lake.folder / "state"
    fails(lambda: run(outputs, Dies(sink, 1), state), "dies here")
    run(outputs, sink, state)
    assert rows_in(spark, lake.sql("result")) == wanted
    late = expected(outputs, TABLES)[1]
    assert len(rows_in(spark, lake.sql("late"))) == late.num_rows > 0
    assert spark.table(lake.sql("late")).columns[-1] == REASON


def test_later_firings_replace_earlier_ones(spark: SparkSession, lake: Lake) -> None:
    outputs = continuous(streamed(spark, lake.folder / "in"))
    wanted = last_firings(wanted_of(outputs))
    sink, state = lake.sink(mode="upsert"), lake.folder / "state"
    fails(lambda: run(outputs, Dies(sink, 2), state), "dies here")
    run(outputs, sink, state)
    assert rows_in(spark, lake.sql("result")) == wanted
    assert max(row[3] for row in wanted) > 0


def test_first_rows_that_go_are_deleted(spark: SparkSession, lake: Lake) -> None:
    """The table has what is among the first rows now, and no column of changes."""
    keyed = gw.stream(streamed(spark, lake.folder / "in")).event_time("ts", WATERMARKS)
    made = (
        keyed.key_by("k")
        .with_outputs()
        .top(3, "v", columns=["seq", "v"], arrival_order=["seq"], shards=3)
    )
    run(made, lake.sink(mode="upsert"), lake.folder / "state")
    found = [row.asDict() for row in fresh(spark, lake.sql("result")).collect()]
    assert {*found[0]} == {"k", "seq", "v", "row_number"}
    wanted: dict[int, list[float]] = {}
    for table in TABLES:
        for row in table.to_pylist():
            wanted.setdefault(row["k"], []).append(row["v"])
    for key, values in wanted.items():
        got = sorted((r["row_number"], r["v"]) for r in found if r["k"] == key)
        assert [v for _, v in got] == sorted(values, reverse=True)[:3]


def test_sessions_that_merged_are_deleted(spark: SparkSession, lake: Lake) -> None:
    """The table has what sessions are now, and no column of changes."""
    early = gw.EarlyAndLateTrigger.of(early=gw.CountTrigger.of(2))
    made = windowed(streamed(spark, lake.folder / "in"), ASSIGNERS["sessions"]).trigger(early)
    outputs = (
        made.allowed_lateness("1 hour")
        .with_firing_columns(changes=True)
        .with_outputs()
        .aggregate(n=gw.count())
    )
    wanted: dict[Any, int] = {}
    results = expected(outputs, TABLES)[0].to_pylist()
    for row in sorted(results, key=lambda row: row["firing"]):
        name = row["k"], row["window_start"], row["window_end"]
        if row["change"] == "delete":
            del wanted[name]
        else:
            wanted[name] = row["n"]
    sink, state = lake.sink(mode="upsert"), lake.folder / "state"
    fails(lambda: run(outputs, Dies(sink, 1), state), "dies here")
    run(outputs, sink, state)
    found = fresh(spark, lake.sql("result"))
    assert "change" not in found.columns
    bounds = [F.unix_micros(name) for name in ("window_start", "window_end")]
    rows = found.select("k", *bounds, "n").collect()
    assert sorted(map(tuple, rows)) == sorted((*name, n) for name, n in wanted.items())
    assert len(wanted) < sum(row["change"] == "insert" for row in results)


def test_a_table_belongs_to_one_query(spark: SparkSession, lake: Lake) -> None:
    """A new checkpoint is refused, not skipped; it may take over, and then the old one may not."""
    outputs = outputs_of("tumbling", streamed(spark, lake.folder / "in"))
    run(outputs, lake.sink(), lake.folder / "state")
    rows = rows_in(spark, lake.sql("result"))
    with pytest.raises(errors.OutputError, match="takes_over=True"):
        run(outputs, lake.sink(), lake.folder / "other")
    assert not (lake.folder / "other").exists()
    run(outputs, replace(lake.sink(), takes_over=True), lake.folder / "other")
    assert rows_in(spark, lake.sql("result")) == sorted(rows * 2, key=repr)
    with pytest.raises(errors.OutputError, match="holds results of a query with another"):
        run(outputs, lake.sink(), lake.folder / "state")


def test_an_older_copy_of_a_checkpoint_is_refused(spark: SparkSession, lake: Lake) -> None:
    """Also one that is behind by micro-batches of other rows, which have the same numbers."""
    outputs = outputs_of("tumbling", streamed(spark, lake.folder / "in"))
    state, copies = lake.folder / "state", [lake.folder / "copy", lake.folder / "copy-2"]
    fails(lambda: run(outputs, Dies(lake.sink(), 1), state), "dies here")
    shutil.copytree(state, copies[0])
    run(outputs, lake.sink(), state)
    fails(lambda: run(outputs, lake.sink(), copies[0]), "an older copy")
    shutil.copytree(state, copies[1])
    files(lake.folder / "in", [*TABLES, *batches(4, 50)[3:]])
    fails(lambda: run(outputs, Dies(lake.sink(), 3), state), "dies here")
    rows = rows_in(spark, lake.sql("result"))
    files(lake.folder / "in", [*TABLES, *batches(4, 60)[3:]])
    fails(lambda: run(outputs, lake.sink(), copies[1]), "an older copy")
    assert rows_in(spark, lake.sql("result")) == rows


def test_a_table_of_ones_own(spark: SparkSession, lake: Lake) -> None:
    """It may have more columns, and parts; one without the columns of results is refused."""
    outputs = outputs_of("tumbling", streamed(spark, lake.folder / "in"))
    wanted = wanted_of(outputs)
    fields = from_arrow_schema(outputs.schema)
    names = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in fields)
    made, part = "", "days(window_start)"
    if lake.kind == "delta":
        made, part = ", day date GENERATED ALWAYS AS (CAST(window_start AS date))", "day"
    spark.sql(
        f"CREATE TABLE {lake.sql('result')} (note string, {names}{made}) "
        f"USING {lake.kind} PARTITIONED BY ({part})"
    )
    run(outputs, lake.sink(), lake.folder / "state")
    found = fresh(spark, lake.sql("result"))
    assert sorted(map(tuple, found.drop("note", "day").collect()), key=repr) == wanted
    assert [row[0] for row in found.select("note").distinct().collect()] == [None]
    if lake.kind == "delta":
        assert found.where("day IS DISTINCT FROM CAST(window_start AS date)").count() == 0
    spark.sql(f"CREATE TABLE {lake.sql('short')} (k bigint, n string) USING {lake.kind}")
    with pytest.raises(errors.OutputError, match="must have the columns") as told:
        run(outputs, lake.sink("short"), lake.folder / "state-2")
    assert told.value.column == "window_start"


@pytest.mark.parametrize("number", [0, 1])
def test_the_snapshots_of_a_query_expire(spark: SparkSession, tmp_path: Path, number: int) -> None:
    """What an Iceberg table no longer tells is asked of people, never guessed."""
    lake = Lake("iceberg", tmp_path)
    files(tmp_path / "in", TABLES)
    outputs = outputs_of("tumbling", streamed(spark, lake.folder / "in"))
    state, table = lake.folder / "state", lake.sql("result")
    fails(lambda: run(outputs, Dies(lake.sink(), number), state), "dies here")
    before = rows_in(spark, table)
    spark.sql(f"DELETE FROM {table} WHERE k = 3")  # another writer's commit
    spark.sql(
        f"CALL {CATALOG}.system.expire_snapshots(table => '{table.removeprefix('lake.')}', "
        "older_than => timestamp '2100-01-01 00:00:00', retain_last => 1)"
    )
    with pytest.raises(Exception, match=f"set the property {LAST}") as told:
        run(outputs, lake.sink(), state)
    name = re.search(rf"{re.escape(LAST)}\.[\w-]+", str(told.value))
    assert name is not None
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('{name[0]}' = '{number}')")
    run(outputs, lake.sink(), state)
    wanted = [row for row in wanted_of(outputs) if row[0] != 3 or row not in before]
    assert rows_in(spark, table) == wanted
    assert len(before) < len(wanted_of(outputs))


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_delta_knows_its_transactions(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """Also where the history is gone, a micro-batch that comes again is no version of the table."""
    lake = Lake("delta", tmp_path)
    files(tmp_path / "in", TABLES)
    outputs = continuous(streamed(spark, lake.folder / "in"))
    sink, state = lake.sink(mode=mode), lake.folder / "state"
    fails(lambda: run(outputs, Dies(sink, 1), state), "dies here")
    history = f"DESCRIBE HISTORY {lake.sql('result')}"
    before = spark.sql(history).where("userMetadata IS NOT NULL").count()
    monkeypatch.setattr(DeltaTables, "last_written", lambda *_: None)
    run(outputs, sink, state)
    after = spark.sql(history).where("userMetadata IS NOT NULL")
    assert after.count() == before + 1  # of micro-batch 2
    assert len(rows_in(spark, lake.sql("result"))) > 10


def test_a_running_query_is_told_that_its_table_was_taken(spark: SparkSession, lake: Lake) -> None:
    outputs = outputs_of("tumbling", streamed(spark, lake.folder / "in"))
    query = gw.write_stream(outputs, lake.sink(), lake.folder / "state")
    try:
        query.processAllAvailable()
        run(outputs, replace(lake.sink(), takes_over=True), lake.folder / "other")
        rows = rows_in(spark, lake.sql("result"))
        files(lake.folder / "in", batches(5, 50))
        with pytest.raises(Exception, match="has taken over the table"):
            query.processAllAvailable()
    finally:
        query.stop()
    assert rows_in(spark, lake.sql("result")) == rows


def test_small_integers_and_a_restart(spark: SparkSession, lake: Lake) -> None:
    """Iceberg keeps them as integers of 32 bits."""
    rows = streamed(spark, lake.folder / "in").withColumn("k", F.col("k").cast("smallint"))
    outputs = outputs_of("tumbling", rows)
    fails(lambda: run(outputs, Dies(lake.sink(), 1), lake.folder / "state"), "dies here")
    run(outputs, lake.sink(), lake.folder / "state")
    assert rows_in(spark, lake.sql("result")) == wanted_of(outputs)


def test_side_outputs_need_tables(spark: SparkSession, lake: Lake) -> None:
    outputs = outputs_of("tumbling", streamed(spark, lake.folder / "in"))
    with pytest.raises(errors.QueryError, match="where each side output of the query goes: none"):
        run(outputs, lake.sink(sides={"odd": lake.table("odd")}), lake.folder / "state")
