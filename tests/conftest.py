"""Fixtures and rules of all tests: Spark sessions, what a machine lacks, hypothesis profiles.

A test that cannot run here is skipped with the reason, except for Java and Spark under CI, where
a missing one is a failure: a green run must not hide that Spark was never asked.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.ptx.tools import MISSING, find_compiler

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TimeZone = Callable[[str], AbstractContextManager[None]]

# Property tests: the same examples in every run, fewer of them in the quick lane (`make test`) and
# under compute-sanitizer (`make gpu`), or more and new ones (`make nightly`).
settings.register_profile(
    "ci",
    derandomize=True,
    max_examples=100,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("quick", settings.get_profile("ci"), max_examples=25)
settings.register_profile("sanitizer", settings.get_profile("ci"), max_examples=12)
settings.register_profile(
    "nightly", settings.get_profile("ci"), derandomize=False, max_examples=2000
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# No test runs long enough for the best code to be worth its compilation, or for threads that
# collect garbage meanwhile: two cores have to do all of it.
_SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

# Spark's workers would take `python3` from PATH, and collect() turns timestamps into local time.
os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
os.environ["TZ"] = "UTC"
time.tzset()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what uses the Spark session."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose marker asks for what this machine lacks."""
    if item.get_closest_marker("spark") or item.get_closest_marker("connect"):
        missing = _missing_for_spark()
        if missing and os.environ.get("CI"):
            pytest.fail(missing, pytrace=False)
        elif missing:
            pytest.skip(missing)
    pretended = item.config.pluginmanager.has_plugin("tests.ptx.plugin")
    if item.get_closest_marker("gpu") and not (pretended or _has_cuda_device()):
        pytest.skip("needs a CUDA device")
    if ptx := item.get_closest_marker("ptx"):
        if not (find_spec("numba_cuda") and find_spec("nvidia")):
            pytest.skip("needs the extra `ptx`")
        if ptx.kwargs.get("runs") and find_compiler() is None:
            pytest.skip(MISSING)


@cache
def _missing_for_spark() -> str | None:
    if find_spec("pyspark") is None:
        return "needs the extra `spark`"
    home = os.environ.get("JAVA_HOME")
    if shutil.which(f"{home}/bin/java" if home else "java") is None:
        return "needs Java 17 or newer: `make test` installs it, or says how"
    return None


@cache
def _has_cuda_device() -> bool:
    # Asked in another process, so that this one holds no CUDA state and may fork.
    question = (
        "import ctypes, sys\n"
        "cuda, count = ctypes.CDLL('libcuda.so.1'), ctypes.c_int()\n"
        "found = cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0\n"
        "sys.exit(not (found and count.value))"
    )
    command = [sys.executable, "-c", question]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A small local Spark session in UTC; `time_zone` moves it elsewhere for a while."""
    from pyspark.sql import SparkSession

    from gpu_windows.spark_glue.session.sockets import socket_settings

    scratch = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[2]")
        .appName("gpu_windows tests")
        .config("spark.driver.memory", os.environ.get("SPARK_DRIVER_MEMORY", "1g"))
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", f"-Duser.timezone=UTC {_SHORT_LIVED}")
        .config("spark.local.dir", str(scratch / "local"))
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .config("spark.log.level", "ERROR")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config(map={**socket_settings({"spark.master": "local[2]"})})
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.fixture
def time_zone(spark: SparkSession) -> TimeZone:
    """Run a block with Spark's session and this process elsewhere.

    ``with time_zone("Asia/Kathmandu"): ...``
    """

    @contextmanager
    def use(zone: str) -> Iterator[None]:
        _set_time_zone(spark, zone)
        try:
            yield
        finally:
            _set_time_zone(spark, "UTC")

    return use


def _set_time_zone(spark: SparkSession, zone: str) -> None:
    spark.conf.set("spark.sql.session.timeZone", zone)
    os.environ["TZ"] = zone
    time.tzset()
