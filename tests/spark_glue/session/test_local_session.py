"""A Spark session on this machine: what is told when it does not start, or fails."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpu_windows.errors import SparkUnavailableError
from gpu_windows.spark_glue.session import local_session


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("[JAVA_GATEWAY_EXITED] Java gateway process exited.", "Error: no room"),
        ("An error\n: java.lang.ClassNotFoundException: My.Plugin\n\tat", "java.lang.*My.Plugin"),
    ],
)
def test_spark_that_does_not_start_is_told_in_its_words(
    message: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.sql import SparkSession

    def fails(_: SparkSession.Builder) -> None:
        os.write(2, b"WARNING: noise\nError: no room\n")
        raise RuntimeError(message)

    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", fails)
    with pytest.raises(SparkUnavailableError, match=f"doctor.*: {told}$"):
        local_session.start("test", cores=1)


def test_an_error_of_spark_is_told_by_its_cause() -> None:
    stack = "An exception was thrown:\nTraceback (most recent call last):\n  File x\n"
    error = RuntimeError(f"{stack}ModuleNotFoundError: No module named 'pyarrow'\n at org.apache")
    assert local_session.reason(error) == "ModuleNotFoundError: No module named 'pyarrow'"
    assert local_session.reason(RuntimeError("plain\nmore")) == "plain"
    assert local_session.reason(RuntimeError()) == "RuntimeError"
    several = "An error\n: org.apache.spark.SparkException: "
    several += "[STAGE_MATERIALIZATION_MULTIPLE_FAILURES] Multiple failures (2)"
    first = "1. org.apache.spark.sql.AnalysisException: [A] is not there"
    found = local_session.reason(RuntimeError(f"{several}\n  {first}\n  2. SparkException: b"))
    assert found == "AnalysisException: [A] is not there"


def test_what_the_jvm_says_is_kept(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w+b") as log:
        with local_session._stderr_to(log):
            os.write(2, b"WARNING: Using incubator modules\nError: no room\n")
        os.write(2, b"not this\n")
        assert local_session._error_in_log(log) == "Error: no room"


@pytest.mark.parametrize(
    ("home", "says"),
    [
        (None, "none on PATH, and JAVA_HOME is unset: apt-get install -y openjdk-17"),
        ("/nowhere", r"none in JAVA_HOME \(/nowhere\)"),
    ],
)
def test_a_session_without_java(
    home: str | None, says: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from pyspark.sql import SparkSession

    def fails(_: SparkSession.Builder) -> None:
        raise RuntimeError("[JAVA_GATEWAY_EXITED] Java gateway process exited")

    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", fails)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    if home is not None:
        monkeypatch.setenv("JAVA_HOME", home)
    with pytest.raises(SparkUnavailableError, match=f"Spark needs Java 17 or newer: .*{says}"):
        local_session.get_session(SparkSession.builder)
