"""Which Python runs Spark's workers, where they are on this machine and nobody has said it."""

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
#: The same as a setting, which spark-submit alone heeds: PySpark looks at the environment.
_SETTING = "spark.pyspark.python"
#: Where one of these is set, Spark is told elsewhere where it runs and by which Python: by the
#: user, by spark-submit, or by a folder of settings.
_TOLD = (PYTHON, "PYSPARK_GATEWAY_PORT", "SPARK_HOME", "SPARK_CONF_DIR", "SPARK_REMOTE", "MASTER")


def use_this_python(settings: Mapping[str, str]) -> None:
    """Have Spark's workers run by this Python, if they will be on this machine.

    Else Spark takes ``python3`` from ``PATH``, which is another one where an environment was not
    activated. If ``spark.pyspark.python`` is among the settings, that one runs them. Nothing
    happens where the environment, or a cluster, has a say.

    Parameters
    ----------
    settings : mapping of str to str
        Of the session that is to be made.
    """
    if any(os.environ.get(name) for name in _TOLD) or "spark.remote" in settings:
        return
    if _SETTING in settings or settings.get("spark.master", "local").startswith("local"):
        os.environ[PYTHON] = settings.get(_SETTING, sys.executable)


def use_this_python_of(builder: SparkSession.Builder) -> None:
    """Do the same for a builder, if it knows its master: else it may yet be given one."""
    settings = getattr(builder, "_options", {})
    if "spark.master" in settings or _SETTING in settings:
        use_this_python(settings)


def warn_of_other_python(session: SparkSession) -> None:
    """Log, once, that workers on this machine are run by a Python that lacks this package.

    A query fails there in the middle of a stack of Spark's. It is a warning and no error, for the
    package may be sent to the workers (``addPyFile``). Workers elsewhere are not asked.
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
        return  # Spark says more about it
    if done.returncode != 0:
        logger.warning(
            "Spark's workers are run by %s, which does not find %s: export PYSPARK_PYTHON=%s before"
            " the session is made, or make it by gpu_windows.session()",
            path,
            package,
            sys.executable,
        )
