"""Chooses the Python of Spark's workers on this machine, unless it is configured elsewhere."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

PYTHON = "PYSPARK_PYTHON"
#: The same as a setting, which only spark-submit reads: PySpark reads the environment.
_SETTING = "spark.pyspark.python"
#: If one of these is set, the user, spark-submit or a folder of settings configures where Spark
#: runs and by which Python.
_CONFIGURED = (
    PYTHON,
    "PYSPARK_GATEWAY_PORT",
    "SPARK_HOME",
    "SPARK_CONF_DIR",
    "SPARK_REMOTE",
    "MASTER",
)


def use_this_python(settings: Mapping[str, str]) -> None:
    """Make Spark's workers on this machine use this Python.

    Otherwise Spark runs ``python3`` from ``PATH``, which is another one if an environment is not
    activated. ``spark.pyspark.python`` among the settings takes precedence. Nothing happens if the
    environment or a cluster configures it.

    Parameters
    ----------
    settings : mapping of str to str
        Of the session to be created.
    """
    if any(os.environ.get(name) for name in _CONFIGURED) or "spark.remote" in settings:
        return
    if _SETTING in settings or settings.get("spark.master", "local").startswith("local"):
        os.environ[PYTHON] = settings.get(_SETTING, sys.executable)


def use_this_python_in(builder: SparkSession.Builder) -> None:
    """Do the same for a builder, if it has a master: without one it may still get any."""
    settings = getattr(builder, "_options", {})
    if "spark.master" in settings or _SETTING in settings:
        use_this_python(settings)


def warn_of_other_python(session: SparkSession) -> None:
    """Log a warning, once, if the Python of workers on this machine lacks this package.

    A query would fail with a long stack of Spark's. It is not an error, because the package may be
    sent to workers (``addPyFile``). Workers on other machines are not checked.
    """
    if "connect" in type(session).__module__.split("."):
        return
    conf = session.conf
    own = conf.get(_SETTING, None)
    if own is None and (conf.get("spark.master", None) or "").startswith("local"):
        _warn_of(os.environ.get(PYTHON) or "python3")


@cache
def _warn_of(command: str) -> None:
    path = shutil.which(command)
    if path is None or path == sys.executable:
        return
    package = __name__.partition(".")[0]
    program = f"from importlib.util import find_spec as f; raise SystemExit(f({package!r}) is None)"
    try:
        done = subprocess.run([path, "-c", program], capture_output=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return  # Spark reports it better
    if done.returncode != 0:
        logger.warning(
            "Spark's workers are run by %s, which does not find %s: export PYSPARK_PYTHON=%s before"
            " the session is made, or make it by gpu_windows.session()",
            path,
            package,
            sys.executable,
        )
