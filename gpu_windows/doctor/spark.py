"""Checks of Spark: a session, its settings, and the environment of its workers."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gpu_windows.doctor.finding import (
    Finding,
    Version,
    fail,
    first_line,
    installed_version,
    ok,
    parse_version,
    warn,
)
from gpu_windows.errors import SparkUnavailableError
from gpu_windows.spark_glue.session import local_session
from gpu_windows.spark_glue.session.settings import (
    ARROW_BYTES,
    ARROW_ROWS,
    ENOUGH_ROWS,
    ROWS,
    UNMEASURED,
    byte_count,
)
from gpu_windows.spark_glue.session.sockets import UNIX_SOCKETS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Packages whose versions are compared between driver and workers.
COMPARED = ("pyarrow", "pandas", "numpy", "numba", "datasketches", "obstore")

_MEND = f"export PYSPARK_PYTHON={sys.executable}"
_PLUGIN = "com.nvidia.spark.SQLPlugin"
_ZONE = "spark.sql.session.timeZone"
_PLUGINS = "spark.plugins"
_RAPIDS_MEMORY = "spark.rapids.memory.gpu.maxAllocFraction"
#: Versions of Spark that the accelerator supports, first and last.
_RAPIDS_SPARKS = (((4, 0, 0), (4, 0, 4)), ((4, 1, 1), (4, 1, 3)), ((4, 2, 0), (4, 2, 0)))
_DAEMON = "spark.python.daemon.module"
_SETTINGS = (_ZONE, ARROW_ROWS, ARROW_BYTES, _PLUGINS, _RAPIDS_MEMORY, _DAEMON)
#: The first Spark that supports Unix domain sockets to its workers.
_FIRST_WITH_SOCKETS = (4, 1, 0)


@dataclass(frozen=True)
class Probe:
    """Outcome of a small Spark job.

    Parameters
    ----------
    version : str
        Of Spark.
    settings : mapping of str to str
        The settings that are checked.
    worker : mapping of str to Any
        ``python`` (list of int), ``executable``, ``versions`` (by package, without the missing
        ones), ``gpu_windows`` (None, or why it cannot be imported), ``kernels``, ``unix_socket``
        (whether the JVM reaches it by one).
    error : str
        Why there is no outcome; empty if there is one.
    mend : str
        How to fix that.
    """

    version: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    worker: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""
    mend: str = ""


def probe_spark() -> Probe:
    """Start Spark on this machine (or take the session that runs) and run a small Python job."""
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    try:
        session = running or local_session.start("gpu-windows doctor", cores=1)
    except SparkUnavailableError as error:
        return Probe(
            error=first_line(error), mend="see Java above, SPARK_HOME, and spark-defaults.conf"
        )
    try:
        settings = {name: _setting(session, name) for name in _SETTINGS}
        found = session.range(1).mapInArrow(_look(), "found string").first()
        return Probe(session.version, settings, json.loads(found["found"]) if found else {})
    except Exception as error:  # noqa: BLE001 - whatever a worker raises
        return Probe(error=f"a Python worker failed: {local_session.reason(error)}", mend=_MEND)
    finally:
        if running is None:
            session.stop()


def _setting(session: SparkSession, name: str) -> str:
    """Return a setting, or Spark's default; empty for an unknown one."""
    from pyspark.errors import PySparkException

    try:
        return session.conf.get(name) or ""
    except PySparkException:
        return ""


def check_worker(probe: Probe) -> Finding:
    """Check that workers have the driver's Python and packages."""
    name = "Workers"
    if probe.error:
        return fail(name, probe.error, probe.mend)
    worker = probe.worker
    python = ".".join(map(str, worker["python"]))
    found = f"Spark {probe.version}, Python {python}, {worker['executable']}"
    if tuple(worker["python"][:2]) != sys.version_info[:2]:
        return fail(name, f"{found}; not the driver's version", _MEND)
    if worker["gpu_windows"] is not None:
        found = f"{found} cannot import gpu_windows: {worker['gpu_windows']}"
        return fail(name, found, f"{_MEND}, or install gpu-windows on every node")
    other = [
        f"{package} {worker['versions'].get(package, 'missing')} "
        f"(driver: {installed_version(package)})"
        for package in COMPARED
        if worker["versions"].get(package) != installed_version(package)
    ]
    if other:
        return warn(name, f"{found}: {', '.join(other)}", "install the same versions on all nodes")
    return ok(name, f"{found}; packages as on the driver; kernels: {worker['kernels']}")


def check_zone(settings: Mapping[str, str]) -> Finding:
    """Report the session's time zone: windows do not depend on it, text and casts do."""
    zone = settings[_ZONE]
    return ok(
        "Session time zone", f"{zone}: used to show and to read text; windows are of instants"
    )


def check_batches(settings: Mapping[str, str]) -> Finding:
    """Check the rows of Arrow batches between the JVM and Python, and whether they are measured."""
    name, mend = "Arrow batches", "gpu_windows.configure(builder) before getOrCreate(), or"
    rows = int(settings[ARROW_ROWS] or 0)
    if byte_count(settings[ARROW_BYTES]) < UNMEASURED:
        found = f"limited to {settings[ARROW_BYTES]}: Spark measures them after every row, and"
        mend = f"{mend} spark.conf.set('{ARROW_BYTES}', {UNMEASURED})"
        return warn(name, f"{found} crossing to Python takes two to three times as long", mend)
    if 0 < rows < ENOUGH_ROWS:
        found = f"{rows:,} rows: crossing to Python costs more than with {ROWS:,}"
        return warn(name, found, f"{mend} spark.conf.set('{ARROW_ROWS}', {ROWS})")
    return ok(name, f"{rows:,} rows" if rows > 0 else "unlimited")


def check_sockets(settings: Mapping[str, str], *, is_unix: bool, spark: Version) -> Finding:
    """Check how the JVM reaches its workers: through TCP every task waits.

    Parameters
    ----------
    settings : mapping of str to str
        Spark's settings, by name.
    is_unix : bool
        Whether the worker that was asked is reached by a Unix domain socket.
    spark : tuple of int
        Spark's version.
    """
    name, found = "Workers' sockets", "TCP, which costs a task some 40 ms"
    if is_unix:
        return ok(name, "Unix domain sockets")
    if spark < _FIRST_WITH_SOCKETS:
        return ok(name, f"{found}; Spark has no other before 4.1")
    if sys.platform != "linux" or settings[_DAEMON].startswith("rapids."):
        return ok(name, found)
    mend = f"--conf {UNIX_SOCKETS}=true when the application starts (docs/operations.md)"
    return warn(name, found, mend)


def check_rapids(settings: Mapping[str, str], spark: Version) -> Finding:
    """Check the RAPIDS Accelerator, where it is in use.

    Parameters
    ----------
    settings : mapping of str to str
        Spark's settings, by name.
    spark : tuple of int
        Spark's version. RAPIDS 26.08 has 4.0.0 to 4.0.4, 4.1.1 to 4.1.3 and 4.2.0.
    """
    name = "RAPIDS Accelerator"
    if _PLUGIN not in settings[_PLUGINS]:
        return ok(name, "not in use: scans and shuffles run on the CPU")
    if settings[_DAEMON] and not settings[_DAEMON].startswith("rapids."):
        mend = f"leave {_DAEMON} unset: the plugin sets it"
        return fail(name, f"{_DAEMON} is {settings[_DAEMON]}, which the plugin refuses", mend)
    if not any(first <= spark <= last for first, last in _RAPIDS_SPARKS):
        version = ".".join(map(str, spark))
        mend = "use Spark 4.0.0-4.0.4, 4.1.1-4.1.3 or 4.2.0"
        return warn(name, f"not known to support Spark {version}", mend)
    if not settings[_RAPIDS_MEMORY]:
        mend = f"--conf {_RAPIDS_MEMORY}=0.5 (docs/rapids.md)"
        return warn(name, "in use, and takes all memory of the GPU, our tasks' too", mend)
    return ok(name, "in use, with a part of the GPU's memory")


def spark_findings(probe: Probe) -> list[Finding]:
    """Run every check of this module on what `probe_spark` returned."""
    findings = [check_worker(probe)]
    if probe.settings:
        version = parse_version(probe.version)
        is_unix = bool(probe.worker.get("unix_socket"))
        findings.append(check_rapids(probe.settings, version))
        findings.append(check_sockets(probe.settings, is_unix=is_unix, spark=version))
        findings += [check_zone(probe.settings), check_batches(probe.settings)]
    return findings


def _look() -> Any:
    """Return the function that workers run; nested, so that it travels by value."""
    names = COMPARED

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import json
        import os
        import sys
        from importlib import metadata

        import pyarrow

        versions, missing, kernels = {}, None, ""
        for name in names:
            try:
                versions[name] = metadata.version(name)
            except metadata.PackageNotFoundError:
                continue
        try:
            from gpu_windows.kernels import backend
            from gpu_windows.spark_glue.tasks.device import use_task_device

            use_task_device(1.0)
            selected = backend.select("auto")
            kernels = f"{selected.name} ({selected.reason})"
        except Exception as error:  # noqa: BLE001 - this is what we want to know
            missing = f"{type(error).__name__}: {error}"
        facts = {
            "python": list(sys.version_info[:3]),
            "executable": sys.executable,
            "versions": versions,
            "gpu_windows": missing,
            "kernels": kernels,
            "unix_socket": os.environ.get("PYTHON_UNIX_DOMAIN_ENABLED", "").lower() == "true",
        }
        for _ in batches:
            yield pyarrow.RecordBatch.from_pydict({"found": [json.dumps(facts)]})

    return look
