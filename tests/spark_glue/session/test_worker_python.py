"""Workers on this machine are run by the Python that begins the session."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import gpu_windows as gw
from gpu_windows.spark_glue.session.worker_python import use_this_python, warn_of_other_python

NAMES = ("PYSPARK_PYTHON", "PYSPARK_GATEWAY_PORT", "SPARK_HOME", "SPARK_CONF_DIR", "SPARK_REMOTE")


def nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*NAMES, "MASTER"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("environment", "settings", "wanted"),
    [
        ({}, {}, sys.executable),
        ({}, {"spark.master": "local[2]"}, sys.executable),
        ({}, {"spark.master": "spark://host:7077"}, None),
        ({}, {"spark.remote": "sc://host"}, None),
        ({}, {"spark.pyspark.python": "python3.12"}, "python3.12"),
        ({}, {"spark.pyspark.python": "python3.12", "spark.master": "yarn"}, "python3.12"),
        ({"PYSPARK_PYTHON": "python3"}, {"spark.pyspark.python": "python3.12"}, "python3"),
        ({"PYSPARK_PYTHON": "python3.12"}, {}, "python3.12"),
        ({"SPARK_CONF_DIR": "/etc/spark"}, {}, None),
        ({"PYSPARK_GATEWAY_PORT": "1"}, {"spark.pyspark.python": "python3.12"}, None),
        ({"MASTER": "yarn"}, {}, None),
    ],
)
def test_where_nobody_has_a_say(
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
    settings: dict[str, str],
    wanted: str | None,
) -> None:
    nothing_is_told(monkeypatch)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    use_this_python(settings)
    assert os.environ.get("PYSPARK_PYTHON") == wanted
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({"spark.master": "local[2]"}, sys.executable),
        ({"spark.master": "spark://host:7077"}, None),
        ({}, None),  # it may yet be given a master
        ({"spark.pyspark.python": "python3.12"}, "python3.12"),
    ],
)
def test_a_builder_that_knows_where_it_runs(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], wanted: str | None
) -> None:
    from pyspark.sql import SparkSession

    nothing_is_told(monkeypatch)
    gw.configure(SparkSession.builder.config(map=settings))
    assert os.environ.get("PYSPARK_PYTHON") == wanted
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)


class Session:
    """What is asked of a session."""

    def __init__(self, **conf: str) -> None:
        self.conf = {f"spark.{name}": value for name, value in conf.items()}


@pytest.mark.parametrize(
    ("conf", "status", "is_told"),
    [
        ({"master": "local[2]"}, 1, True),
        ({"master": "local[2]"}, 0, False),
        ({"master": "yarn"}, 1, False),
        ({"master": "local[2]", "pyspark.python": "python3.12"}, 1, False),
    ],
)
def test_a_python_without_the_package_is_told_of(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
    conf: dict[str, str],
    status: int,
    is_told: bool,
) -> None:
    other = tmp_path / "python3"
    other.write_text(f"#!/bin/sh\nexit {status}\n")
    other.chmod(0o755)
    monkeypatch.setenv("PYSPARK_PYTHON", str(other))
    session: Any = Session(**conf)
    for _ in range(2):
        warn_of_other_python(session)
    said = (
        f"run by {other}, which does not find gpu_windows: export PYSPARK_PYTHON={sys.executable}"
    )
    assert [said in record.getMessage() for record in caplog.records] == [True] * is_told


PROGRAM = """
import gpu_windows as gw
spark = gw.session(config={"spark.master": "local[1]", "spark.ui.enabled": "false"})
rows = spark.range(100).selectExpr("timestamp_seconds(id) AS ts", "id % 2 AS k")
print(gw.stream(rows).key_by("k").top(3, "ts").count())
"""


@pytest.mark.thorough
def test_a_session_without_python_on_the_path(tmp_path: Path) -> None:
    """As in an editor that runs a file by the Python of an environment that is not active."""
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    found = {name: value for name, value in os.environ.items() if name not in (*NAMES, "MASTER")}
    java = [folder for folder in found["PATH"].split(":") if (Path(folder) / "java").exists()]
    bare = tmp_path / "bin"
    bare.mkdir()
    for tool in ("bash", "dirname", "ps", "uname", "sh", "hostname", "env", "readlink", "cat"):
        place = next((p for p in (f"/usr/bin/{tool}", f"/bin/{tool}") if Path(p).exists()), None)
        if place is not None:
            (bare / tool).symlink_to(place)
    (bare / "java").symlink_to(Path(java[0]) / "java")
    done = subprocess.run(
        [sys.executable, str(file)],
        env={**found, "PATH": str(bare)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-1] == "6"
