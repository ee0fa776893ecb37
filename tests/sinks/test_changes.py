"""Tables with one row a session: sessions grow and merge, and queries start again meanwhile."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

import gpu_windows as gw
from gpu_windows import errors
from gpu_windows.sinks.tables import statements
from gpu_windows.sinks.tables.writer import Merge
from tests.sinks.dying import fails, run
from tests.sinks.sqlite_sink import SqliteSink
from tests.sinks.test_sqlite_sink import rows_in
from tests.spark_glue.stream_runs import files, seconds, streamed, windowed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Table = dict[Any, dict[str, Any]]

#: Micro-batches: one session of 15 rows that grows, one that bridges two others of its key.
GROWS = [[("a", 10 * part + at, 1) for at in range(5)] for part in range(3)]
BRIDGES = [[("b", 0, 1), ("b", 14, 1)], [("b", 7, 1), ("c", 60, 1)], [("c", 61, 1)]]
TABLES = [seconds([*one, *other]) for one, other in zip(GROWS, BRIDGES, strict=True)]


def sessions(source: Any) -> gw.typing.WindowedStream:
    """Sessions that fire at each row, at their end and at each row after it."""
    made = windowed(source, gw.EventTimeSessionWindows.with_gap("8 seconds")).arrival_order("ts")
    early = gw.EarlyAndLateTrigger.of(early=gw.CountTrigger.of(1))
    return made.trigger(early).allowed_lateness("1 minute")


def apply(table: Table, rows: DataFrame, on: tuple[str, ...]) -> None:
    """Do what a MERGE does that applies changes; it may not find two rows for one of a table."""
    found = [row.asDict() for row in rows.collect()]
    names = [tuple(row[name] for name in on) for row in found]
    assert len({*names}) == len(names)
    for name, row in zip(names, found, strict=True):
        if row["change"] == "delete":
            table.pop(name, None)
        else:
            table[name] = row


def apply_and_die(table: Table, rows: DataFrame, on: tuple[str, ...], _: int) -> None:
    """Apply changes, and die before the micro-batch is committed, if there are some."""
    apply(table, rows, on)
    if rows.count():
        raise KeyError("dies here")


def counts(table: Table) -> dict[str, list[int]]:
    """Return how many rows the sessions of each key have."""
    found: dict[str, list[int]] = {}
    for row in table.values():
        found.setdefault(row["k"], []).append(row["n"])
    return {key: sorted(found[key]) for key in sorted(found)}


def test_a_table_has_a_session_once(spark: SparkSession, tmp_path: Path) -> None:
    """By the documented keys, whatever was written before it grew, and started again each time."""
    table: Table = {}
    seen = []
    for number in range(len(TABLES)):
        files(tmp_path / "in", TABLES[: number + 1])
        outputs = sessions(streamed(spark, tmp_path / "in", TABLES[0])).with_firing_columns(
            changes=True
        )
        made = outputs.with_outputs().aggregate(n=gw.count())
        if number == 1:  # written, and then written again
            dying = gw.upsert(partial(apply_and_die, table))
            fails(partial(run, made, dying, tmp_path / "state"), "dies here")
        run(made, gw.upsert(lambda rows, on, _: apply(table, rows, on)), tmp_path / "state")
        seen.append(counts(table))
    assert seen == [
        {"a": [5], "b": [1, 1]},
        {"a": [10], "b": [3], "c": [1]},
        {"a": [15], "b": [3], "c": [2]},
    ]


@pytest.mark.thorough
def test_what_is_written_is_reduced_to_a_table(spark: SparkSession, tmp_path: Path) -> None:
    """As docs/windows.md has it: the last change of each key and window, without those that go."""
    files(tmp_path / "in", TABLES)
    outputs = sessions(streamed(spark, tmp_path / "in", TABLES[0])).with_firing_columns(
        changes=True
    )
    run(
        outputs.with_outputs().aggregate(n=gw.count()),
        gw.ParquetSink(tmp_path / "out"),
        tmp_path / "state",
    )
    changes = gw.read_output(spark, tmp_path / "out")
    last = F.max_by(F.struct("*"), "firing").alias("last")
    latest = changes.groupBy("k", "window_start", "window_end").agg(last).select("last.*")
    found = latest.where("change <> 'delete'").groupBy("k").agg(F.sum("n")).collect()
    assert sorted(map(tuple, found)) == [("a", 15), ("b", 3), ("c", 2)]
    assert changes.where("change = 'delete'").where("n IS NOT NULL").count() == 0


@pytest.mark.thorough
def test_lateness_that_bridges_two_sessions(spark: SparkSession, tmp_path: Path) -> None:
    """They have fired at their end, and are one when a late row comes between them."""
    tables = [seconds(rows) for rows in (BRIDGES[0], [("d", 50, 1)], [("b", 7, 1)])]
    table: Table = {}
    seen = []
    for number in (2, 3):
        files(tmp_path / "in", tables[:number])
        made = sessions(streamed(spark, tmp_path / "in", tables[0]))
        outputs = (
            made.trigger(gw.EventTimeTrigger())
            .with_firing_columns(changes=True)
            .with_outputs()
            .aggregate(n=gw.count())
        )
        run(outputs, gw.upsert(lambda rows, on, _: apply(table, rows, on)), tmp_path / "state")
        seen.append(counts(table))
    assert seen == [{"b": [1, 1]}, {"b": [3]}]


@pytest.mark.thorough
def test_tables_of_delta_and_iceberg_delete_what_goes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files(tmp_path / "in", TABLES)
    outputs = sessions(streamed(spark, tmp_path / "in", TABLES[0])).with_firing_columns(
        changes=True
    )
    made = outputs.with_outputs().aggregate(n=gw.count())
    gw.DeltaSink("main.a.b", mode="upsert").check(made.plan)
    gw.IcebergSink("lake.a.b", mode="upsert").check(made.plan)
    table: Table = {}
    changes: list[str | None] = []

    def merge(rows: DataFrame, _: str, on: tuple[str, ...], **said: Any) -> None:
        apply(table, rows, on)
        changes.append(said["change"])

    monkeypatch.setattr(statements, "merge", merge)

    class Merges(gw.Sink, gw.SinkWriter):
        def open(self, query: gw.typing.SinkQuery) -> gw.SinkWriter:
            self.merge = Merge.of(query)
            return self

        def write(self, batch: gw.typing.SinkBatch) -> None:
            self.merge(batch.outputs["result"], "t")

    run(made, Merges(), tmp_path / "state")
    assert counts(table) == {"a": [15], "b": [3], "c": [2]}
    assert {*changes} == {"change"}


@pytest.mark.thorough
def test_the_documented_sink_of_ones_own(spark: SparkSession, tmp_path: Path) -> None:
    files(tmp_path / "in", TABLES)
    outputs = sessions(streamed(spark, tmp_path / "in", TABLES[0])).with_firing_columns(
        changes=True
    )
    path = tmp_path / "results.db"
    run(
        outputs.with_outputs().aggregate(n=gw.count()),
        SqliteSink(str(path), "sessions"),
        tmp_path / "state",
    )
    assert [(row[0], row[3]) for row in rows_in(path, "sessions")] == [
        ("a", 15),
        ("b", 3),
        ("c", 2),
    ]


@pytest.mark.parametrize(
    "sink",
    [
        gw.upsert(lambda *_: None),
        gw.DeltaSink("main.a.b", mode="upsert"),
        gw.IcebergSink("lake.a.b", mode="upsert"),
        gw.KafkaSink("topic", mode="upsert", options={"kafka.bootstrap.servers": "h:1"}),
        SqliteSink("results.db", "sessions"),
    ],
    ids=["upsert", "Delta", "Iceberg", "Kafka", "one's own"],
)
def test_tables_need_changes_of_windows_that_grow(
    spark: SparkSession, tmp_path: Path, sink: gw.Sink
) -> None:
    files(tmp_path / "in", TABLES[:1])
    made = sessions(streamed(spark, tmp_path / "in", TABLES[0])).with_firing_columns()
    with pytest.raises(
        errors.QueryError, match=r"ask for it by with_firing_columns\(changes=True\)"
    ):
        gw.write_stream(made.with_outputs().aggregate(n=gw.count()), sink, tmp_path / "state")
    once = made.trigger(gw.EventTimeTrigger()).allowed_lateness("0 seconds")
    sink.check(
        once.with_outputs().aggregate(n=gw.count()).plan
    )  # it stays what it is once it has fired
    sink.check(made.with_firing_columns(changes=True).with_outputs().aggregate(n=gw.count()).plan)
