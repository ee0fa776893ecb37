"""A session that exists gets what can be changed, and a warning names the rest."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

import gpu_windows as gw
from benchmarks.session_settings import change_settings
from gpu_windows.errors import InvalidOptionError
from gpu_windows.spark_glue.session import running_session
from gpu_windows.spark_glue.session.settings import ARROW_BYTES, ARROW_ROWS, SETTINGS
from gpu_windows.spark_glue.session.sockets import UNIX_SOCKETS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_rows_cross_quickly_from_now_on(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    with change_settings(spark, {ARROW_ROWS: "10", ARROW_BYTES: "10"}):
        assert gw.configure(spark, rows=77) is spark
        assert spark.conf.get(ARROW_ROWS) == "77"
        assert spark.conf.get(ARROW_BYTES) == SETTINGS[ARROW_BYTES]
    assert not caplog.records


def test_what_an_application_reads_once_is_named(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    config = {"spark.sql.shuffle.partitions": "3", "spark.driver.memory": "77g"}
    names = (ARROW_ROWS, ARROW_BYTES, "spark.sql.shuffle.partitions")
    with change_settings(spark, {name: spark.conf.get(name) or "" for name in names}):
        assert gw.session(config=config).sparkContext is spark.sparkContext
        assert spark.conf.get("spark.sql.shuffle.partitions") == "3"
    (record,) = caplog.records
    assert record.getMessage().startswith("spark.driver.memory: an application reads it")
    assert "gpu_windows.configure(SparkSession.builder" in record.getMessage()


def test_sockets_are_named_where_they_could_be(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_sockets = tuple(map(int, spark.version.split(".")[:2])) >= (4, 1)
    assert running_session._missing_sockets(spark) == []  # the tests' session has them
    monkeypatch.setattr(running_session, "UNIX_SOCKETS", "spark.not.set")
    for name in ("PYSPARK_GATEWAY_PORT", "SPARK_HOME", "SPARK_CONF_DIR", "SPARK_REMOTE", "MASTER"):
        monkeypatch.delenv(name, raising=False)
    wanted = [UNIX_SOCKETS] * (has_sockets and sys.platform == "linux")
    assert running_session._missing_sockets(spark) == wanted


def test_gpus_cannot_be_added(spark: SparkSession) -> None:
    rule = r"gpu= sets spark\.executor\.resource\.gpu\.amount, spark\.task\.resource.*builder"
    with pytest.raises(InvalidOptionError, match=rule):
        gw.configure(spark, gpu=2)
