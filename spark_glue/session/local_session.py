"""Starts a Spark session on this machine without the JVM's log messages."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from gpu_windows.errors import SparkUnavailableError
from gpu_windows.spark_glue.session.sockets import socket_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_STDERR = 2
_LONGEST = 300
_SPARK = r"(?:org\.apache\.spark\.(?:\w+\.)*)?"
_EXCEPTION = re.compile(rf"(?:: |\d+\. )?{_SPARK}([\w.]+(?:Error|Exception): .*)")
#: Spark's condition for several failures, which are in the lines after it.
_SEVERAL = "[STAGE_MATERIALIZATION_MULTIPLE_FAILURES]"
#: Settings without which Spark writes to the terminal.
QUIET = {
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def start(
    application: str, *, cores: int, settings: Mapping[str, str] | None = None
) -> SparkSession:
    """Start Spark on this machine; what its JVM writes meanwhile is used for the error only.

    Parameters
    ----------
    application : str
        Its name.
    cores : int
        How many the session may use, at least 1.
    settings : mapping of str to str, optional
        More settings of Spark.

    Raises
    ------
    SparkUnavailableError
        With the JVM's error. ``gpu-windows doctor`` reports how to fix it.
    """
    from pyspark.sql import SparkSession

    master = f"local[{cores}]"
    builder = SparkSession.builder.master(master).appName(application)
    own = {**QUIET, **(settings or {})}
    sockets = socket_settings({"spark.master": master, **own})
    with tempfile.TemporaryFile() as log:
        try:
            with _stderr_to(log):
                return builder.config(map={**sockets, **own}).getOrCreate()
        except Exception as error:
            gone = "JAVA_GATEWAY_EXITED" in str(error)  # then only the JVM knows why
            cause = (gone and _error_in_log(log)) or reason(error)
            rule = f"Spark did not start, `gpu-windows doctor` tells more: {cause}"
            raise SparkUnavailableError(rule) from error


def get_session(builder: SparkSession.Builder) -> SparkSession:
    """Return the session of a builder; say what to do if Java is missing.

    Raises
    ------
    SparkUnavailableError
        If the JVM did not start.
    """
    try:
        return builder.getOrCreate()
    except Exception as error:
        if "JAVA_GATEWAY_EXITED" not in str(error):
            raise
        raise SparkUnavailableError(f"Spark needs Java 17 or newer: {_java_problem()}") from error


def _java_problem() -> str:
    home = os.environ.get("JAVA_HOME")
    if shutil.which(f"{home}/bin/java" if home else "java") is not None:
        return "the one that is there did not start Spark (its lines are above); gpu-windows doctor"
    where = f"none in JAVA_HOME ({home})" if home else "none on PATH, and JAVA_HOME is unset"
    return f"there is {where}: apt-get install -y openjdk-17-jre-headless, or set JAVA_HOME"


def reason(error: BaseException) -> str:
    """Return the line with the cause of an error from Spark, without its stack.

    For an error in a Python worker it is the exception that the worker raised.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    found = (_EXCEPTION.match(line) for line in lines if _SEVERAL not in line)
    raised = [match[1] for match in found if match]
    return (raised or lines or [type(error).__name__])[0][:_LONGEST]


@contextmanager
def _stderr_to(file: IO[bytes]) -> Iterator[None]:
    """Send this process's standard error to a file; a process started meanwhile stays there."""
    sys.stderr.flush()
    before = os.dup(_STDERR)
    os.dup2(file.fileno(), _STDERR)
    try:
        yield
    finally:
        os.dup2(before, _STDERR)
        os.close(before)


def _error_in_log(log: IO[bytes]) -> str:
    """Return the first line of the JVM's log that names an error."""
    log.seek(0)
    lines = [line.strip() for line in log.read().decode(errors="replace").splitlines()]
    errors = [line for line in lines if "Error" in line or "Exception" in line]
    return (errors or lines or [""])[0][:_LONGEST]
