"""Which Python runs Spark's workers, where they are on this machine and nobody has said it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

PYTHON = "PYSPARK_PYTHON"
#: Where one of these is set, Spark is told elsewhere where it runs and by which Python: by the
#: user, by spark-submit, or by a folder of settings.
_TOLD = (PYTHON, "PYSPARK_GATEWAY_PORT", "SPARK_HOME", "SPARK_CONF_DIR", "SPARK_REMOTE", "MASTER")


def use_this_python(settings: Mapping[str, str]) -> None:
    """Have Spark's workers run by this Python, if they will be on this machine.

    Else Spark takes ``python3`` from ``PATH``, which is another one where an environment was not
    activated. Nothing happens where the user, or a cluster, has a say.

    Parameters
    ----------
    settings : mapping of str to str
        Of the session that is to be made.
    """
    if any(os.environ.get(name) for name in _TOLD) or "spark.remote" in settings:
        return
    if "spark.pyspark.python" in settings:
        return
    if settings.get("spark.master", "local").startswith("local"):
        os.environ[PYTHON] = sys.executable
