"""Workers on this machine are run by the Python that begins the session."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import SparkFiles

import gpu_windows as gw
from gpu_windows.errors import WorkerPythonError
from gpu_windows.spark_glue.session import worker_python
from gpu_windows.spark_glue.session.worker_python import prepare_workers, use_this_python

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


def test_a_later_session_has_its_own_python(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing_is_told(monkeypatch)
    for python in ("/a/python", "/b/python"):
        use_this_python({"spark.pyspark.python": python})
        assert os.environ["PYSPARK_PYTHON"] == python
    use_this_python({})
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
    use_this_python({"spark.master": "spark://host:7077"})
    assert "PYSPARK_PYTHON" not in os.environ
    monkeypatch.setenv("PYSPARK_PYTHON", "/user/python")
    for _ in range(2):
        use_this_python({"spark.pyspark.python": "/a/python"})
        assert os.environ["PYSPARK_PYTHON"] == "/user/python"


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


class Context:
    """What is read and changed of a context."""

    def __init__(self) -> None:
        self.pythonExec = "python3"
        self.environment: dict[str, str] = {}


class Session:
    """What is asked of a session."""

    def __init__(self, **conf: str) -> None:
        self.conf = {f"spark.{name}": value for name, value in conf.items()}
        self.sparkContext = Context()


@pytest.mark.parametrize(
    ("conf", "environment", "wanted"),
    [
        ({"master": "local[2]"}, {}, sys.executable),
        ({"master": "local[2]"}, {"PYSPARK_PYTHON": "python3"}, "python3"),
        ({"master": "local[2]", "pyspark.python": "/nowhere"}, {}, "/nowhere"),
        ({"master": "spark://host:7077"}, {}, "python3"),
        ({}, {}, "python3"),
    ],
)
def test_workers_of_any_local_session_run_this_python(
    monkeypatch: pytest.MonkeyPatch,
    root: Path,
    conf: dict[str, str],
    environment: dict[str, str],
    wanted: str,
) -> None:
    nothing_is_told(monkeypatch)
    monkeypatch.setattr(worker_python, "_check_python", lambda *_: None)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    session: Any = Session(**conf)
    monkeypatch.setattr(sys, "path", [*sys.path, "", "relative", str(root)])
    prepare_workers(session)
    assert session.sparkContext.pythonExec == wanted
    folders = session.sparkContext.environment.get("PYTHONPATH", "").split(os.pathsep)
    assert (str(root) in folders) == (wanted == sys.executable)
    assert not {"", "relative", sysconfig.get_path("purelib")} & {*filter(None, folders)}
    before = dict(session.sparkContext.environment)
    prepare_workers(session)
    assert session.sparkContext.environment == before


def test_workers_import_in_the_order_of_this_process(
    monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    """What PYTHONPATH names precedes what an installation adds, as it does here."""
    nothing_is_told(monkeypatch)
    first, last = str(root), str(root / "installed")
    (root / "installed").mkdir()
    monkeypatch.setenv("PYTHONPATH", first)
    monkeypatch.setattr(sys, "path", [first, sysconfig.get_path("purelib"), last])
    session: Any = Session(master="local")
    prepare_workers(session)
    assert session.sparkContext.environment == {"PYTHONPATH": os.pathsep.join([first, last])}
    monkeypatch.setattr(sys, "path", [first])
    other: Any = Session(master="local")
    prepare_workers(other)
    assert other.sparkContext.environment == {}


def test_a_session_of_spark_connect_is_left_alone() -> None:
    prepare_workers(SimpleNamespace())  # type: ignore[arg-type]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the user's, and Spark's folder of files that were sent."""
    (tmp_path / "sent").mkdir()
    monkeypatch.setattr(SparkFiles, "getRootDirectory", lambda: str(tmp_path / "sent"))
    return tmp_path


OWN = ".".join(map(str, sys.version_info[:2]))


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (f"[[{OWN.replace('.', ', ')}], []]", None),
        ('[[3, 99], ["gpu_windows", "numba"]]', "does not find gpu_windows, numba"),
        ("[[3, 6], []]", f"must have the minor version of this Python, {OWN}: .* got 3.6"),
        ("not a Python", None),
    ],
)
def test_a_python_that_cannot_run_workers(
    monkeypatch: pytest.MonkeyPatch, root: Path, answer: str, says: str | None
) -> None:
    other = root / "python3"
    other.write_text(f"#!/bin/sh\necho '{answer}'\n")
    other.chmod(0o755)
    monkeypatch.setenv("PYSPARK_PYTHON", str(other))
    session: Any = Session(master="local[2]")
    session.sparkContext.pythonExec = str(other)
    if says is None:
        prepare_workers(session)
        return
    for _ in range(2):
        with pytest.raises(WorkerPythonError, match=says) as error:
            prepare_workers(session)
        assert f"run {other}" in str(error.value)
        assert f"export PYSPARK_PYTHON={sys.executable}" in str(error.value)


def test_a_package_that_was_sent_is_found(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    """It is looked for as a worker would: among Spark's files."""
    with zipfile.ZipFile(root / "sent" / "sent.zip", "w") as file:
        file.writestr("sent_package/__init__.py", "")
    monkeypatch.setattr(worker_python, "WORKER_MODULES", ("sent_package",))
    path = worker_python._worker_path(Context())  # type: ignore[arg-type]
    worker_python._check_python(sys.executable, path)
    with pytest.raises(WorkerPythonError, match="does not find sent_package"):
        worker_python._check_python(sys.executable, "")


PROGRAM = """
import gpu_windows as gw
from pyspark.sql import SparkSession
from of_the_user import Double
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
rows = spark.range(100).selectExpr("timestamp_seconds(id) AS ts", "id % 2 AS k")
counts = gw.stream(rows).key_by("k").count_window(10)
print(counts.process(Double(), ["k"], output="n LONG").count())
"""
OF_THE_USER = """
import gpu_windows as gw
class Double(gw.functions.ProcessWindowFunction):
    def process(self, key, context, rows):
        return [{"n": 2 * len(rows)}]
"""


@pytest.mark.slow
def test_a_session_without_python_on_the_path(tmp_path: Path) -> None:
    """As in an editor that runs a file by the Python of an environment that is not active.

    A module beside the file is found, too, from wherever it is run.
    """
    file = tmp_path / "program" / "program.py"
    file.parent.mkdir()
    file.write_text(PROGRAM)
    (file.parent / "of_the_user.py").write_text(OF_THE_USER)
    found = {name: value for name, value in os.environ.items() if name not in (*NAMES, "MASTER")}
    java = [folder for folder in found["PATH"].split(":") if (Path(folder) / "java").exists()]
    bare = tmp_path / "bin"
    bare.mkdir()
    for tool in ("bash", "dirname", "ps", "uname", "sh", "hostname", "env", "readlink", "cat"):
        place = next((p for p in (f"/usr/bin/{tool}", f"/bin/{tool}") if Path(p).exists()), None)
        if place is not None:
            (bare / tool).symlink_to(place)
    (bare / "java").symlink_to(Path(java[0]) / "java")
    (bare / "python3").write_text("#!/bin/sh\necho this is another Python >&2\nexit 3\n")
    (bare / "python3").chmod(0o755)
    done = subprocess.run(
        [sys.executable, str(file)],
        env={**found, "PATH": str(bare)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-1] == "10"
