"""The doctor: every check with good and with bad input, the probes, and the report.

The checks of the GPU are in test_gpu.py.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from gpu_windows import doctor
from gpu_windows.cli import app
from gpu_windows.doctor import Finding, Status, finding, host, spark
from gpu_windows.spark_glue.session.settings import ARROW_BYTES, ARROW_ROWS, SETTINGS
from gpu_windows.spark_glue.session.sockets import UNIX_SOCKETS
from tests.doctor.findings import judged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OK, WARN, FAIL = Status.OK, Status.WARN, Status.FAIL
PLUGIN = {"spark.plugins": "com.nvidia.spark.SQLPlugin"}


def settings(**changes: str) -> dict[str, str]:
    """Settings of a session, as the probe returns them."""
    usual = {
        "spark.sql.session.timeZone": "UTC",
        **SETTINGS,
        "spark.plugins": "",
        "spark.rapids.memory.gpu.maxAllocFraction": "",
        "spark.python.daemon.module": "",
    }
    return usual | changes


# ---- this machine


@pytest.mark.parametrize(
    ("java", "pyspark", "status", "part"),
    [
        (host.Java("/bin/java", 17, frozenset({host.MODULE})), (4, 0, 0), OK, "Java 17"),
        (host.Java("/bin/java", 21, frozenset({host.MODULE})), (4, 1, 1), OK, "Java 21"),
        (host.Java("/bin/java", 25, frozenset({host.MODULE})), (4, 3, 0), OK, "Java 25"),
        (host.Java("/bin/java", 25, frozenset({host.MODULE})), (4, 0, 1), WARN, "openjdk-17"),
        (host.Java("/bin/java", 11, frozenset({host.MODULE})), (4, 3, 0), FAIL, "openjdk-17"),
        (host.Java("/bin/java", 17, frozenset({"java.base"})), (4, 3, 0), FAIL, host.MODULE),
        ("no `java` on PATH, and JAVA_HOME is unset", (4, 3, 0), FAIL, "apt-get install"),
        ("JAVA_HOME is /x, but /x/bin/java does not run", (4, 3, 0), FAIL, "unset JAVA_HOME"),
    ],
)
def test_java(java: host.Java | str, pyspark: tuple[int, ...], status: Status, part: str) -> None:
    judged(host.check_java(java, pyspark), status, part)


@pytest.mark.parametrize(
    ("check", "version", "status", "part"),
    [
        (host.check_pyspark, "4.0.0", OK, "4.0.0"),
        (host.check_pyspark, "4.3.0", OK, "4.3.0"),
        (host.check_pyspark, "3.5.7", FAIL, "pip install 'gpu-windows[spark]'"),
        (host.check_pyspark, "5.0.0.dev1", FAIL, "below 5"),
        (host.check_pyspark, None, FAIL, "not installed"),
        (host.check_pandas, "2.3.3", OK, "2.3.3"),
        (host.check_pandas, "3.0.0", FAIL, "pip install 'pandas<3'"),
        (host.check_pandas, None, FAIL, "gpu-windows[spark]"),
        (host.check_arrow, "26.0.1", OK, "26.0.1"),
        (host.check_arrow, "17.0.0", FAIL, "pyarrow>=18"),
        (host.check_arrow, None, FAIL, "not installed"),
        (host.check_numba, metadata.version("numba"), OK, "threads"),
        (host.check_numba, None, FAIL, "pip install 'numba"),
    ],
)
def test_packages_of_this_python(
    check: Any, version: str | None, status: Status, part: str
) -> None:
    judged(check(version), status, part)


def test_numba_that_cannot_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    judged(host.check_numba("0.61.0"), FAIL, "cannot be imported", "pip install --upgrade")


def test_the_python_of_the_driver() -> None:
    judged(host.check_python(), OK, sys.executable)
    judged(host.check_python((3, 10, 1)), FAIL, "3.11")


def test_the_python_of_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judged(host.check_worker_command(sys.executable), OK, sys.executable)
    judged(
        host.check_worker_command("/nope/python"), FAIL, f"export PYSPARK_PYTHON={sys.executable}"
    )
    other = tmp_path / "python3"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    judged(host.check_worker_command(None), WARN, "unset", str(other), "not the driver's")
    other.unlink()
    other.symlink_to(sys.executable)
    judged(host.check_worker_command(None), WARN, "another environment")
    judged(host.check_worker_command(str(Path(sys.executable))), OK)


def test_the_kernel_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one.nbc").touch()
    judged(host.check_kernel_cache(tmp_path), WARN, "temporary", "GPU_WINDOWS_CACHE_DIR")
    monkeypatch.setattr("tempfile.gettempdir", lambda: "/elsewhere")
    judged(host.check_kernel_cache(tmp_path), OK, "1 compiled kernels")


def java_home(folder: Path, script: str) -> str:
    (folder / "bin").mkdir()
    command = folder / "bin" / "java"
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(0o755)
    return str(folder)


def test_java_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = (
        'if [ "$1" = -version ]; then echo \'openjdk version "17.0.15" 2025-04-15\' >&2\n'
        "else echo java.base@17.0.15; echo jdk.incubator.vector@17.0.15; fi"
    )
    monkeypatch.setenv("JAVA_HOME", java_home(tmp_path, script))
    modules = frozenset({"java.base", "jdk.incubator.vector"})
    assert host.find_java() == host.Java(str(tmp_path / "bin" / "java"), 17, modules)


def test_java_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    judged(host.check_java(host.find_java(), (4, 3)), FAIL, "does not run", "unset JAVA_HOME")
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    judged(host.check_java(host.find_java(), (4, 3)), FAIL, "on PATH", "apt-get install")


# ---- Spark


def worker(**changes: Any) -> spark.Probe:
    installed = [name for name in spark.COMPARED if find_spec(name) is not None]
    versions = {name: metadata.version(name) for name in installed}
    told = {
        "python": list(sys.version_info[:3]),
        "executable": sys.executable,
        "versions": versions,
        "gpu_windows": None,
        "kernels": "cpu (no driver)",
    }
    return spark.Probe("4.3.0", settings(), told | changes)


@pytest.mark.parametrize(
    ("probe", "status", "part"),
    [
        (worker(), OK, "kernels: cpu"),
        (worker(python=[3, 8, 1]), FAIL, "not the driver's version"),
        (worker(gpu_windows="No module named 'gpu_windows'"), FAIL, "on every node"),
        (worker(versions={"pyarrow": "1.0"}), WARN, "pyarrow 1.0 (driver:"),
        (worker(versions={}), WARN, "numba missing"),
        (spark.Probe(error="Spark did not start", mend="see Java"), FAIL, "see Java"),
    ],
)
def test_workers(probe: spark.Probe, status: Status, part: str) -> None:
    judged(spark.check_worker(probe), status, part)


@pytest.mark.parametrize(
    ("changes", "status", "part"),
    [
        ({}, OK, "32,768"),
        ({ARROW_ROWS: "0"}, OK, "unlimited"),
        ({ARROW_ROWS: "10000"}, WARN, "more than with 32,768"),
        ({ARROW_BYTES: "67108864b"}, WARN, "configure"),
        ({ARROW_BYTES: "2147483647b"}, OK, "32,768"),
    ],
)
def test_arrow_batches(changes: dict[str, str], status: Status, part: str) -> None:
    judged(spark.check_batches(settings(**changes)), status, part)


def test_the_session_time_zone() -> None:
    told = settings(**{"spark.sql.session.timeZone": "Asia/Kathmandu"})
    judged(spark.check_zone(told), OK, "Asia/Kathmandu")


@pytest.mark.parametrize(
    ("changes", "version", "status", "part"),
    [
        ({}, (4, 3, 0), OK, "not in use"),
        (PLUGIN, (4, 1, 1), WARN, "maxAllocFraction=0.5"),
        (PLUGIN | {"spark.rapids.memory.gpu.maxAllocFraction": "0.5"}, (4, 0, 3), OK, "a part"),
        (PLUGIN, (4, 3, 0), WARN, "4.1.1"),
        (PLUGIN, (4, 1, 0), WARN, "4.1.1"),
        (PLUGIN | {"spark.python.daemon.module": "mine"}, (4, 1, 1), FAIL, "unset"),
    ],
)
def test_rapids(
    changes: dict[str, str], version: tuple[int, ...], status: Status, part: str
) -> None:
    judged(spark.check_rapids(settings(**changes), version), status, part)


@pytest.mark.parametrize(
    ("is_unix", "daemon", "version", "platform", "status", "part"),
    [
        (True, "", (4, 3, 0), "linux", OK, "Unix"),
        (False, "", (4, 1, 0), "linux", WARN, "40 ms"),
        (False, "", (4, 3, 0), "linux", WARN, f"{UNIX_SOCKETS}=true"),
        (False, "", (4, 3, 0), "darwin", OK, "TCP"),
        (False, "", (4, 0, 5), "linux", OK, "before 4.1"),
        (False, "rapids.daemon", (4, 1, 1), "linux", OK, "TCP"),
    ],
)
def test_sockets(
    is_unix: bool,
    daemon: str,
    version: tuple[int, ...],
    platform: str,
    status: Status,
    part: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    known = settings(**{"spark.python.daemon.module": daemon})
    judged(spark.check_sockets(known, is_unix=is_unix, spark=version), status, part)


def test_spark_is_probed(spark: SparkSession) -> None:
    from gpu_windows.doctor.finding import parse_version
    from gpu_windows.doctor.spark import probe_spark, spark_findings

    probe = probe_spark()
    assert probe.error == ""
    assert probe.version == spark.version
    assert probe.worker["executable"] == os.environ["PYSPARK_PYTHON"]
    findings = spark_findings(probe)
    assert [found.name for found in findings] == [
        "Workers",
        "RAPIDS Accelerator",
        "Workers' sockets",
        "Session time zone",
        "Arrow batches",
    ]
    judged(findings[0], OK, "packages as on the driver")
    by_unix = spark.conf.get(UNIX_SOCKETS, None) == "true" and parse_version(probe.version) >= (
        4,
        1,
    )
    assert probe.worker["unix_socket"] is by_unix
    assert spark.range(3).count() == 3  # a session that was there before is left running


# ---- the report


def test_a_check_that_breaks_is_a_finding() -> None:
    def breaks() -> Finding:
        raise ZeroDivisionError("by zero\nand more")

    judged(finding.run_check("Numbers", breaks), FAIL, "by zero")


@pytest.mark.parametrize(
    ("version", "expected"), [("13.4.92", (13, 4, 92)), ("4.1.0.dev2", (4, 1, 0)), ("x", ())]
)
def test_versions_are_read(version: str, expected: tuple[int, ...]) -> None:
    assert finding.parse_version(version) == expected


FINDINGS = [
    finding.ok("Java", "Java 17"),
    finding.warn("Arrow batches", "10,000 rows", "set [more]"),
    finding.fail("pandas", "3.0.0", "pip install 'pandas<3'"),
]


def test_the_report_marks_and_mends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "examine", lambda **_: FINDINGS)
    console = Console(file=io.StringIO(), width=100)
    assert doctor.run(console=console) == 1
    told = console.file.getvalue()  # type: ignore[attr-defined]
    for part in ("fail  pandas", "→ pip install 'pandas<3'", "set [more]", "1 ok, 1 warn, 1 fail"):
        assert part in told


def test_what_mends_is_not_cut_into_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    mend = f"{'words that are copied ' * 5}spark.conf.set('{'spark.a.long.name.' * 5}', 7)"
    monkeypatch.setattr(doctor, "examine", lambda **_: [finding.warn("Name", "found " * 30, mend)])
    console = Console(file=io.StringIO(), width=80)
    doctor.run(console=console)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert f"      → {mend}" in lines
    assert all(len(line) <= 80 for line in lines if mend not in line)


@pytest.mark.parametrize(("count", "status"), [(3, 1), (2, 0)])
def test_json_and_the_exit_status(count: int, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []

    def examine(*, spark: bool) -> list[Finding]:
        asked.append(spark)
        return FINDINGS[:count]

    monkeypatch.setattr(doctor, "examine", examine)
    outcome = CliRunner().invoke(app, ["doctor", "--json", "--no-spark"])
    assert outcome.exit_code == status
    assert asked == [False]
    told = json.loads(outcome.stdout)
    assert [entry["status"] for entry in told] == ["ok", "warn", "fail"][:count]
    assert set(told[0]) == {"name", "status", "found", "mend"}


def test_everything_is_examined_without_spark() -> None:
    names = [found.name for found in doctor.examine(spark=False)]
    assert len(names) == len(set(names))
    for name in ("Java", "PySpark", "Python of workers", "Kernel cache", "GPU", "Kernels run on"):
        assert name in names
    assert "Workers" not in names


def test_the_command_of_this_python() -> None:
    """Where ``gpu-windows`` on PATH is another environment's, or none is."""
    command = [sys.executable, "-m", "gpu_windows", "doctor", "--help"]
    told = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert "python -m gpu_windows doctor" in told
