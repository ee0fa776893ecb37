"""Unix domain sockets between the JVM and its Python workers, where both are on this machine.

Spark writes the beginning of a task to its worker in small pieces. Through TCP the second one waits
until the system has acknowledged the first, which takes 40 ms: in every task (Nagle's algorithm and
delayed acknowledgements). Spark knows the other way from 4.1 on; before, it ignores the setting.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

#: Read once, when an application starts.
UNIX_SOCKETS = "spark.python.unix.domain.socket.enabled"
#: Where one of these is set, Spark is configured elsewhere, too.
_ELSEWHERE = ("PYSPARK_GATEWAY_PORT", "SPARK_HOME", "SPARK_CONF_DIR", "SPARK_REMOTE", "MASTER")
#: With one of these other programs than Spark's may start workers: those of RAPIDS know TCP alone.
_OTHER_WORKERS = ("spark.plugins", "spark.python.daemon.module", "spark.remote")
#: Rows that are sent ahead: a first version of it knows TCP alone (SPARK-57948).
_PIPELINED = "spark.python.udf.pipelined.enabled"


def socket_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the setting that has tasks wait less, where it is safe: on Linux, on this machine.

    Parameters
    ----------
    settings : mapping of str to str
        Of the application that is to start. Nothing is returned unless its master is local, and
        nothing if it names plugins or another daemon of workers.
    """
    if sys.platform != "linux" or any(os.environ.get(name) for name in _ELSEWHERE):
        return {}
    if any(name in settings for name in (*_OTHER_WORKERS, _PIPELINED)):
        return {}
    is_local = settings.get("spark.master", "").startswith("local")
    return {UNIX_SOCKETS: "true"} if is_local else {}
