"""Sinks for tables, without the tables: what they take, what a merge says, whose commits are."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import gpu_windows as gw
from gpu_windows import errors
from gpu_windows.errors import OutputError
from gpu_windows.sinks.tables import ownership, statements
from gpu_windows.sinks.tables.formats import DeltaTables, IcebergTables, Stamp
from gpu_windows.sinks.tables.ownership import FIRST, LAST, OWNER, TableOwner
from gpu_windows.sinks.tables.writer import TableWriter
from tests.spark_glue.streams import ASSIGNERS, batches, files, streamed, windowed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("sink", "rule"),
    [
        (lambda: gw.DeltaSink(""), "Delta tables are named by text"),
        (lambda: gw.DeltaSink(3), "Delta tables are named by text"),  # type: ignore[arg-type]
        (lambda: gw.DeltaSink("/a`b"), "no backtick"),
        (lambda: gw.DeltaSink("a", mode="merge"), '"append" or "upsert"'),  # type: ignore[arg-type]
        (lambda: gw.DeltaSink("a", late="a"), "a table of its own, got a, a"),
        (lambda: gw.DeltaSink("/a", sides={"x": "/a/"}), "a table of its own"),
        (lambda: gw.DeltaSink("a", sides=["x"]), "maps tags to tables"),  # type: ignore[arg-type]
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
    sink = gw.IcebergSink("lake.a.b", late="lake.a.late", sides={"odd": "lake.a.odd"})
    assert [*sink.places] == ["result", "sides/odd", "late"]


def test_results_that_cannot_replace_each_other(spark: SparkSession, tmp_path: Path) -> None:
    files(tmp_path / "in", batches(1, 5))
    made = windowed(streamed(spark, tmp_path / "in"), ASSIGNERS["tumbling"])
    sink = gw.DeltaSink(tmp_path / "table", mode="upsert")
    with pytest.raises(errors.QueryError, match=r"with_firing_columns\(\), got n"):
        gw.write_stream(made.outputs(n=gw.count()), sink, tmp_path / "state")
    other = gw.DeltaSink(tmp_path / "table", sides={"odd": "odd"})
    with pytest.raises(errors.QueryError, match="goes: none, got odd"):
        gw.write_stream(made.outputs(n=gw.count()), other, tmp_path / "state")
    assert not (tmp_path / "state").exists()


def test_commits_say_whose_they_are() -> None:
    stamp = Stamp("q", 7)
    for tables, names in (
        (DeltaTables(), {"txnAppId", "txnVersion", "userMetadata"}),
        (IcebergTables(), {"snapshot-property.gpu-windows.query",
                           "snapshot-property.gpu-windows.micro-batch"}),
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
    for identity, stamped in (("mine", False), ("of the query", True), (None, True)):
        session.session_id = identity
        seen.clear()
        with writer._stamping(session, Stamp("q", 7)):
            assert bool(seen) == stamped


def test_what_a_history_forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    said: dict[str, str] = {}
    monkeypatch.setattr(ownership, "properties", lambda *_: said)
    monkeypatch.setattr(ownership, "set_property", lambda *given: said.update([given[2:]]))
    session: Any = None
    owner = TableOwner(0, "q")
    assert owner.last_written(session, "t", None, 3) is None
    assert said == {FIRST: "q:3"}
    assert owner.last_written(session, "t", None, 3) is None  # it died before it had written
    assert owner.last_written(session, "t", 8, 9) == 8
    with pytest.raises(OutputError, match=f"set the property {LAST} to q:9 if .* to q:8 if not"):
        owner.last_written(session, "t", None, 9)
    said[LAST] = "q:9"
    assert owner.last_written(session, "t", None, 9) == 9
    assert TableOwner(1, "other").last_written(session, "t", None, 0) is None
    assert said[FIRST] == "other:0"
    said[OWNER] = "3:q"
    assert TableOwner.of(session, "t") == TableOwner(3, "q")
    said[OWNER] = "q"
    with pytest.raises(OutputError, match="is GENERATION:QUERY, got q"):
        TableOwner.of(session, "t")


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


def test_a_writer_goes_to_another_process() -> None:
    """On Spark Connect."""
    writer = TableWriter(IcebergTables(), {"result": "t"}, {}, None, takes_over=True)
    assert pickle.loads(pickle.dumps(writer))._places == {"result": "t"}  # noqa: S301
