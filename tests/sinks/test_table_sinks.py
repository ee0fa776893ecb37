"""Sinks for tables, without the tables: what they take, what a merge says, whose commits are."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import Row, types

import gpu_windows as gw
from gpu_windows import errors
from gpu_windows.errors import OutputError
from gpu_windows.sinks.tables import expired_history, ownership, statements
from gpu_windows.sinks.tables.expired_history import FIRST, LAST, is_written_by_record
from gpu_windows.sinks.tables.formats import DeltaTables, IcebergTables, Stamp
from gpu_windows.sinks.tables.ownership import OWNER, TableOwner
from gpu_windows.sinks.tables.writer import TableWriter
from gpu_windows.spark_glue.columns.names import quote_name, quote_table, quote_text
from tests.spark_glue.stream_runs import ASSIGNERS, batches, files, streamed, windowed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.conftest import TimeZone


@pytest.mark.parametrize(
    ("sink", "rule"),
    [
        (lambda: gw.DeltaSink(""), "Delta tables are named by text"),
        (lambda: gw.DeltaSink(3), "Delta tables are named by text"),  # type: ignore[arg-type]
        (lambda: gw.DeltaSink("/a`b"), "no backtick"),
        (lambda: gw.DeltaSink("a", mode="merge"), '"append" or "upsert"'),  # type: ignore[arg-type]
        (lambda: gw.DeltaSink("a", late="a"), "a place of its own, got a, a"),
        (lambda: gw.DeltaSink("/a", sides={"x": "/a/"}), "a place of its own"),
        (lambda: gw.DeltaSink("./a"), "is absolute, or has a scheme"),
        (lambda: gw.DeltaSink(Path("a")), "is absolute, or has a scheme"),
        (lambda: gw.IcebergSink("minutes"), "catalog, namespace and name"),
        (lambda: gw.DeltaSink("a", sides=["x"]), "is a mapping"),  # type: ignore[arg-type]
        (lambda: gw.DeltaSink("a", takes_over=1), "True or False"),  # type: ignore[arg-type]
        (lambda: gw.IcebergSink("/data/a"), "catalog, namespace and name"),
    ],
)
def test_what_is_no_sink(sink: Any, rule: str) -> None:
    with pytest.raises(errors.QueryError, match=rule):
        sink()


def test_how_sql_calls_tables() -> None:
    assert gw.DeltaSink(Path("/a/b")).places["result"] == "delta.`/a/b`"
    assert gw.DeltaSink("s3://a/b/").places["result"] == "delta.`s3://a/b`"
    assert gw.DeltaSink("main.web.minutes").places["result"] == "main.web.minutes"
    assert gw.DeltaSink("main.`my-db`.t").places["result"] == "main.`my-db`.t"
    sink = gw.IcebergSink("lake.a.b", late="lake.a.late", sides={"odd": "lake.a.odd"})
    assert [*sink.places] == ["result", "sides/odd", "late"]


def test_results_that_cannot_replace_each_other(spark: SparkSession, tmp_path: Path) -> None:
    files(tmp_path / "in", batches(1, 5))
    made = windowed(streamed(spark, tmp_path / "in"), ASSIGNERS["tumbling"])
    sink = gw.DeltaSink(tmp_path / "table", mode="upsert")
    with pytest.raises(errors.QueryError, match=r"with_firing_columns\(\), got n"):
        gw.write_stream(made.with_outputs().aggregate(n=gw.count()), sink, tmp_path / "state")
    other = gw.DeltaSink(tmp_path / "table", sides={"odd": "odd"})
    with pytest.raises(errors.QueryError, match="goes: none, got odd"):
        gw.write_stream(made.with_outputs().aggregate(n=gw.count()), other, tmp_path / "state")
    assert not (tmp_path / "state").exists()


def test_commits_say_whose_they_are() -> None:
    stamp = Stamp("q", 7, 100)
    for tables, names in (
        (DeltaTables(), {"txnAppId", "txnVersion", "userMetadata"}),
        (IcebergTables(), {"snapshot-property.gpu-windows.query",
                           "snapshot-property.gpu-windows.micro-batch",
                           "snapshot-property.gpu-windows.rows",
                           "snapshot-property.gpu-windows.planned-ms"}),
    ):  # fmt: skip
        options, settings = tables.options(stamp), tables.settings(stamp)
        assert {*options} == names
        assert [*options.values()] == [*settings.values()]
        for name, setting in zip(options, settings, strict=True):
            assert setting.endswith(name)


def test_merges_are_not_stamped_in_the_session_of_a_user() -> None:
    """Else whatever the user writes meanwhile would have the stamp, and Delta might skip it."""
    writer = TableWriter(DeltaTables(), {}, {}, None, takes_over=False)
    writer._session = "mine"
    seen: list[str] = []

    class Session:
        class conf:  # noqa: N801
            set = staticmethod(lambda name, _: seen.append(name))
            unset = staticmethod(lambda _: None)

        session_id: str | None = None

    session: Any = Session()
    for own, stamped in (("mine", False), ("of the query", True), (None, True)):
        session.session_id = own
        seen.clear()
        with writer._stamping(session, Stamp("q", 7, 100)):
            assert bool(seen) == stamped


class Table:
    """The properties and snapshots of a table, in place of `statements`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.said: dict[str, str] = {}
        self.snapshots: dict[int, int | None] = {}
        for module in (expired_history, ownership):
            monkeypatch.setattr(module, "properties", lambda *_: self.said)
        monkeypatch.setattr(
            expired_history, "set_property", lambda *given: self.said.update([given[2:]])
        )
        monkeypatch.setattr(
            expired_history, "unset_property", lambda *given: self.said.pop(given[2])
        )

    def sql(self, text: str) -> Table:
        self.rows = [Row(snapshot_id=s, parent_id=p) for s, p in self.snapshots.items()]
        if "history" in text:
            self.rows = self.rows[-1:]
        return self

    def collect(self) -> list[Row]:
        return self.rows

    def holds(self, query: str, number: int) -> bool:
        return is_written_by_record(self, "t", query, number)  # type: ignore[arg-type]


def test_what_a_history_forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only where the snapshots go back far enough is a micro-batch known not to be there."""
    table = Table(monkeypatch)
    assert not table.holds("q", 3)
    assert table.said == {f"{FIRST}.q": "3:none"}
    assert not table.holds("q", 3)  # it died before it had written
    table.snapshots = {20: 10}  # of another writer; the first one has expired
    rule = f"set the property {LAST}.q to 3 if the table holds its micro-batch 3, to 2 if not"
    with pytest.raises(OutputError, match=rule):
        table.holds("q", 3)
    assert not table.holds("p", 0)
    assert table.said[f"{FIRST}.p"] == "0:20"
    assert not table.holds("p", 0)
    table.said[f"{LAST}.q"] = "5"
    with pytest.raises(OutputError, match="is 3 or 2, got 5"):
        table.holds("q", 3)


@pytest.mark.parametrize(("answer", "found"), [("3", True), ("2", False)])
def test_what_people_say_counts_once(
    monkeypatch: pytest.MonkeyPatch, answer: str, found: bool
) -> None:
    table = Table(monkeypatch)
    table.snapshots = {20: 10}
    table.said = {f"{FIRST}.q": "1:none", f"{LAST}.q": answer}
    assert table.holds("q", 3) == found
    assert table.said == {f"{FIRST}.q": "3:20"}
    table.snapshots = {40: 30}
    with pytest.raises(OutputError, match="no longer has this query"):
        table.holds("q", 4)


def test_whose_a_table_is(monkeypatch: pytest.MonkeyPatch) -> None:
    table: Any = Table(monkeypatch)
    assert TableOwner.of(table, "t") is None
    query = "0123456789abcdef" * 2
    table.said[OWNER] = f"3:{query}"
    assert TableOwner.of(table, "t") == TableOwner(3, query)
    for other in ("q", query, f"3:{query}x", f"3:{query}', 'a' = 'b", f"-3:{query}", "3:"):
        table.said[OWNER] = other
        with pytest.raises(OutputError, match="is GENERATION:QUERY, 32 hex digits, got"):
            TableOwner.of(table, "t")


def test_names_and_texts_are_quoted_in_sql(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever they hold, they end no name and no literal."""
    odd = "a; DROP TABLE b -- 'c' `` \\' d"
    assert quote_name("a`b") == "`a``b`"
    assert quote_table("lake.`my.db`.t; x y") == "`lake`.`my.db`.`t; x y`"
    assert quote_table("delta.`/a b/c'd`") == "`delta`.`/a b/c'd`"
    (row,) = spark.sql(f"SELECT {quote_text(odd)} AS {quote_name(odd)}").collect()
    assert row.asDict() == {odd: odd}
    for name in ("", "a`b", "a..b", "`a", "a.", "`a`b"):
        with pytest.raises(errors.QueryError, match="a table is named by one name"):
            quote_table(name)
    with pytest.raises(errors.QueryError, match="a table is named by one name"):
        _ = gw.DeltaSink("main.`t` SET TBLPROPERTIES").places
    said: list[str] = []
    monkeypatch.setattr(type(spark), "sql", lambda _, text: said.append(text))
    statements.set_property(spark, "a.b c", "x", "1', 'y' = '2")
    statements.unset_property(spark, "a.b c", "x') --")
    assert said == [
        "ALTER TABLE `a`.`b c` SET TBLPROPERTIES ('x' = '1\\', \\'y\\' = \\'2')",
        "ALTER TABLE `a`.`b c` UNSET TBLPROPERTIES IF EXISTS ('x\\') --')",
    ]


def test_iceberg_has_no_small_integers() -> None:
    kind = types.StructType([types.StructField("a", types.ArrayType(types.ByteType()))])
    wanted = types.StructType([types.StructField("a", types.ArrayType(types.IntegerType()))])
    assert IcebergTables().column_type(kind) == wanted
    assert IcebergTables().column_type(types.ShortType()) == types.IntegerType()
    assert DeltaTables().column_type(types.ShortType()) == types.ShortType()


def test_what_others_say_of_their_commits() -> None:
    assert Stamp.of({"gpu-windows.query": "q"}) is None
    assert Stamp.of(None) is None
    said = {"gpu-windows.query": "q", "gpu-windows.micro-batch": "7", "gpu-windows.rows": "9"}
    assert Stamp.of({**said, "gpu-windows.planned-ms": ""}) == Stamp("q", 7, 9)
    assert Stamp.of({**said, "gpu-windows.planned-ms": "12"}) == Stamp("q", 7, 9, 12)
    for stamp in (Stamp("q", 7, 9), Stamp("q", 7, 9, 12)):
        options = IcebergTables().options(stamp)
        told = {name.removeprefix("snapshot-property."): v for name, v in options.items()}
        assert Stamp.of(told) == stamp
        assert Stamp.of(json.loads(DeltaTables().options(stamp)["userMetadata"])) == stamp


def test_which_micro_batch_comes_again() -> None:
    session: Any = None
    made = {"session": session, "number": 3, "rows": 5, "sizes": {}, "read": print}
    batch = gw.typing.SinkBatch(**made, planned_ms=12)
    assert batch.is_again(5, 12)
    assert batch.is_again(5, None)  # of an earlier version of this package
    assert not batch.is_again(4, 12)
    assert not batch.is_again(5, 13)
    assert gw.typing.SinkBatch(**made).is_again(5, 13)


def test_what_a_merge_says(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = spark.sql("SELECT 1 AS `a.b`, timestamp_micros(-5) AS w, 'delete' AS change")
    said: list[str] = []
    monkeypatch.setattr(type(spark), "sql", lambda _, text: said.append(text))
    statements.merge(rows, "t", ["a.b", "w"], change="change", within=["w"])
    statements.merge(rows.drop("change"), "t", ["a.b"], change=None)
    assert "t.`a.b` <=> s.`a.b` AND t.`w` <=> s.`w`" in said[0]
    assert "t.`w` >= timestamp_micros(-5L) AND t.`w` <= timestamp_micros(-5L)" in said[0]
    assert "WHEN MATCHED AND s.`change` = 'delete' THEN DELETE WHEN MATCHED THEN UPDATE" in said[0]
    assert "NOT MATCHED AND NOT s.`change` = 'delete' THEN INSERT (`a.b`, `w`)" in said[0]
    assert "timestamp_micros" not in said[1]
    assert "DELETE" not in said[1]
    assert not spark.catalog.listTables()


def test_a_merge_bounds_times_without_a_zone(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, time_zone: TimeZone
) -> None:
    """The bounds are times that clocks show, in whatever zone the session is."""
    times = [f"2024-03-31 02:{minute}:00.000001" for minute in (30, 10, 50)]
    values = ", ".join(f"(TIMESTAMP_NTZ '{each}')" for each in times)
    said: list[str] = []
    with time_zone("Europe/Zurich"):
        rows = spark.sql(f"SELECT * FROM VALUES {values} AS t(w)").cache()
        with monkeypatch.context() as patch:
            patch.setattr(type(spark), "sql", lambda _, text: said.append(text))
            statements.merge(rows, "t", ["w"], change=None, within=["w"])
        bounds = said[0].partition("t.`w` <=> s.`w` AND ")[2].partition(" WHEN")[0]
        assert bounds.count("TIMESTAMP_NTZ") == 2
        others = "TIMESTAMP_NTZ '2024-03-31 02:10:00', TIMESTAMP_NTZ '2024-03-31 03:10:00'"
        more = spark.sql(f"SELECT EXPLODE(ARRAY({others}))")
        found = rows.unionAll(more).alias("t").where(bounds)
        assert found.count() == 3


def test_a_writer_goes_to_another_process() -> None:
    """On Spark Connect."""
    writer = TableWriter(IcebergTables(), {"result": "t"}, {}, None, takes_over=True)
    assert pickle.loads(pickle.dumps(writer)).places == {"result": "t"}  # noqa: S301
