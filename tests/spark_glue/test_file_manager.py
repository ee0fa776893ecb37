"""Which of Spark's managers writes the files of a checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, cast

import pytest

from gpu_windows.errors import OutputError
from gpu_windows.spark_glue import file_manager
from gpu_windows.spark_glue.file_manager import MANAGER, renaming_quickly
from tests.query.queries import rows_of
from tests.spark_glue.streams import (
    batches,
    expected,
    files,
    outputs_of,
    results_in,
    run_to_the_end,
    streamed,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STREAMING = "org.apache.spark.sql.execution.streaming"


@dataclass
class Conf:
    """Settings of a session."""

    values: dict[str, str] = field(default_factory=dict)

    def get(self, key: str, default: str | None) -> str | None:
        return self.values.get(key, default)

    def set(self, key: str, value: str) -> None:
        self.values[key] = value

    def unset(self, key: str) -> None:
        del self.values[key]


@dataclass
class Session:
    version: str = "4.3.0"
    conf: Conf = field(default_factory=Conf)


def during(session: Session, checkpoint: str) -> str | None:
    with renaming_quickly(cast("Any", session), checkpoint):
        return session.conf.get(MANAGER, None)


@pytest.mark.parametrize(
    ("version", "package"),
    [("4.0.1", STREAMING), ("4.1.0", f"{STREAMING}.checkpointing"), ("4.3.0", None)],
)
def test_a_local_checkpoint_has_the_file_systems_until_the_query_has_started(
    version: str, package: str | None
) -> None:
    session = Session(version)
    wanted = f"{package or f'{STREAMING}.checkpointing'}.FileSystemBasedCheckpointFileManager"
    assert during(session, "file:/tmp/checkpoint") == wanted
    assert session.conf.values == {}


@pytest.mark.parametrize("uri", ["hdfs://name/checkpoint", "s3a://bucket/checkpoint"])
def test_others_have_what_spark_takes(uri: str) -> None:
    assert during(Session(), uri) is None


def test_what_the_user_has_set_stays() -> None:
    session = Session(conf=Conf({MANAGER: "theirs"}))
    assert during(session, "file:/tmp/checkpoint") == "theirs"
    assert session.conf.values == {MANAGER: "theirs"}


def test_it_is_unset_where_a_query_does_not_start() -> None:
    session = Session()
    with (
        pytest.raises(ValueError, match="no start"),
        renaming_quickly(cast("Any", session), "file:/"),
    ):
        raise ValueError("no start")
    assert session.conf.values == {}


def test_queries_that_start_at_once_wait_for_each_other() -> None:
    session, seen = Session(), []
    others = [
        Thread(target=lambda uri=uri: seen.append(during(session, uri)))
        for uri in ("hdfs://name/checkpoint", "file:/tmp/other")
    ]
    with renaming_quickly(cast("Any", session), "file:/tmp/checkpoint"):
        for other in others:
            other.start()
        assert seen == []
    for other in others:
        other.join(10)
    assert sorted(each is None for each in seen) == [False, True]
    assert session.conf.values == {}


def test_one_that_is_started_while_another_one_starts_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(file_manager, "_PATIENCE", 0.01)
    session = Session()
    with (
        renaming_quickly(cast("Any", session), "file:/tmp/checkpoint"),
        pytest.raises(OutputError, match=r"onQueryStarted of a listener.*file:/tmp/other"),
    ):
        during(session, "file:/tmp/other")
    assert during(session, "file:/tmp/other") is not None


def test_what_the_user_sets_meanwhile_stays() -> None:
    session = Session()
    with renaming_quickly(cast("Any", session), "file:/tmp/checkpoint"):
        session.conf.set(MANAGER, "theirs")
    assert session.conf.values == {MANAGER: "theirs"}


@pytest.mark.thorough
def test_a_query_goes_on_whichever_manager_wrote_its_checkpoint(
    spark: SparkSession, tmp_path: Path
) -> None:
    tables, folder = batches(3), tmp_path / "in"
    by_context = f"{STREAMING}.checkpointing.FileContextBasedCheckpointFileManager"
    for count, manager in enumerate((by_context, None, by_context), start=1):
        files(folder, tables[:count])
        outputs = outputs_of("tumbling", streamed(spark, folder))
        with manager_of(spark, manager):
            run_to_the_end(outputs, tmp_path)
        assert spark.conf.get(MANAGER, None) is None
    results, _ = expected(outputs, tables)
    assert results_in(spark, tmp_path) == rows_of(results)


@contextmanager
def manager_of(spark: SparkSession, name: str | None) -> Iterator[None]:
    """Have a session with this manager."""
    if name is not None:
        spark.conf.set(MANAGER, name)
    try:
        yield
    finally:
        spark.conf.unset(MANAGER)
