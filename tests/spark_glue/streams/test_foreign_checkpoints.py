"""A checkpoint that is not one of `write_stream` is refused, and stays as it is."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import gpu_windows as gw
from gpu_windows.checkpointing import object_files
from gpu_windows.errors import CheckpointError, StateCorruptedError, StateMismatchError
from tests.spark_glue.stream_runs import batches, files, outputs_of, run_to_the_end, streamed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = batches(1, 50)


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def outputs(spark: SparkSession, folder: Path) -> gw.typing.Outputs:
    return outputs_of("tumbling", streamed(spark, folder / "in"))


def refused(spark: SparkSession, folder: Path) -> str:
    """Start a query on the folder ``state``; return why it is refused."""
    sinks: list[str | Callable[..., None]] = [str(folder / "out"), lambda *_: None]
    for sink in sinks:
        with pytest.raises(StateMismatchError, match="a checkpoint must be a new folder") as found:
            gw.write_stream(outputs(spark, folder), sink, str(folder / "state"))
    assert not (folder / "out").exists()
    return str(found.value)


@pytest.mark.thorough
def test_a_query_of_sparks_that_runs_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    """Its checkpoint stays as it was, and the query is not stopped."""
    files(tmp_path / "in", TABLES)
    state = tmp_path / "state"
    counted = streamed(spark, tmp_path / "in").withWatermark("ts", "1 second").groupBy("k", "ts")
    writer = counted.count().writeStream.format("noop").option("checkpointLocation", str(state))
    query = writer.start()
    try:
        query.processAllAvailable()
        before = contents(state)
        assert "streaming query that write_stream did not start" in refused(spark, tmp_path)
        assert contents(state) == before
        assert query.isActive
    finally:
        query.stop()
    before = contents(state)
    assert "streaming query that write_stream did not start" in refused(spark, tmp_path)
    assert contents(state) == before


@pytest.mark.parametrize("left", ["of an earlier version", "whose commits are gone"])
def test_a_query_without_its_commits(spark: SparkSession, tmp_path: Path, left: str) -> None:
    """Checkpoints of versions with state in Spark's stores have other files in our folder."""
    files(tmp_path / "in", TABLES)
    run_to_the_end(outputs(spark, tmp_path), tmp_path)
    shutil.rmtree(tmp_path / "state" / "gpu_windows")
    shutil.rmtree(tmp_path / "out")
    if left == "of an earlier version":
        (tmp_path / "state" / "gpu_windows").mkdir()
        (tmp_path / "state" / "gpu_windows" / "part-0.txt").write_text('{"format": 3}')
    before = contents(tmp_path / "state")
    assert "did not start, or one whose commits are gone" in refused(spark, tmp_path)
    assert contents(tmp_path / "state") == before


def test_what_tells_a_checkpoint_from_others_is_as_it_was_written(
    spark: SparkSession, tmp_path: Path
) -> None:
    """It goes to tables, topics and SQL."""
    files(tmp_path / "in", TABLES)
    run_to_the_end(outputs(spark, tmp_path), tmp_path)
    path = max((tmp_path / "state" / "gpu_windows" / "commits").iterdir())
    commit = json.loads(path.read_text())
    for lineage in ("0' , 'a' = 'b", commit["lineage"].upper() + "0", ""):
        path.write_text(json.dumps({**commit, "lineage": lineage}))
        with pytest.raises(StateCorruptedError, match="lineage in a commit is 32 hex digits, got"):
            run_to_the_end(outputs(spark, tmp_path), tmp_path)
    path.write_text(json.dumps(commit))
    run_to_the_end(outputs(spark, tmp_path), tmp_path)


@pytest.mark.parametrize("name", ["rows.csv", "year=2024/part-0.parquet", "[a]*/rows.csv"])
def test_a_folder_of_something_else(spark: SparkSession, tmp_path: Path, name: str) -> None:
    files(tmp_path / "in", TABLES)
    file = tmp_path / "state" / name
    file.parent.mkdir(parents=True)
    file.write_text("1,2")
    assert "this one has other files" in refused(spark, tmp_path)
    assert list(contents(tmp_path / "state").values()) == [b"1,2"]


def test_a_file(spark: SparkSession, tmp_path: Path) -> None:
    files(tmp_path / "in", TABLES)
    (tmp_path / "state").write_text("1,2")
    assert "this one has other files" in refused(spark, tmp_path)


@pytest.mark.thorough
@pytest.mark.parametrize("left", [(), ("gpu_windows/commits",)])
def test_an_empty_folder_and_one_whose_first_start_died_are_new(
    spark: SparkSession, tmp_path: Path, left: tuple[str, ...]
) -> None:
    files(tmp_path / "in", TABLES)
    (tmp_path / "state").mkdir()
    for folder in left:
        (tmp_path / "state" / folder).mkdir(parents=True)
        (tmp_path / "state" / folder / ".draft-000000000000-ab").write_text("")
    run_to_the_end(outputs(spark, tmp_path), tmp_path)
    assert (tmp_path / "state/commits/0").exists()


class Bucket:
    """A store of objects in memory, and what was opened of it."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self.options: dict[str, str] = {}

    def open(self, _: object, options: tuple[tuple[str, str], ...], __: int) -> Any:
        self.options = dict(options)
        return self.store


def test_stores_that_are_not_taken(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Credentials are those of the session; nothing is begun, and nothing is left."""
    obstore, stores = (pytest.importorskip(name) for name in ("obstore", "obstore.store"))
    files(tmp_path / "in", TABLES)
    with pytest.raises(CheckpointError, match=r"HDFS has no public call .* got hdfs://a/b$"):
        gw.write_stream(outputs(spark, tmp_path), tmp_path / "out", "hdfs://a/b")
    bucket = Bucket(stores.MemoryStore())
    monkeypatch.setattr(object_files, "open_store", bucket.open)
    named = {"access.key": "key", "secret.key": "hidden", "endpoint": "http://host"}
    put = obstore.put

    def replace(store: Any, path: str, data: bytes, **_: Any) -> Any:
        return put(store, path, data)

    monkeypatch.setattr("obstore.put", replace)
    for name, value in named.items():
        spark.conf.set(f"spark.hadoop.fs.s3a.{name}", value)
    try:
        with pytest.raises(CheckpointError, match="only if there is none") as raised:
            gw.write_stream(outputs(spark, tmp_path), tmp_path / "out", "s3a://bucket/a")
    finally:
        for name in named:
            spark.conf.unset(f"spark.hadoop.fs.s3a.{name}")
    assert bucket.options == {
        "access_key_id": "key", "secret_access_key": "hidden", "endpoint": "http://host"
    }  # fmt: skip
    assert "hidden" not in str(raised.value)
    assert not (tmp_path / "out").exists()
    assert bucket.store.list().collect() == []
