"""Unix domain sockets between the JVM and its Python workers, where both are on this machine.

Spark writes the start of a task to its worker in small pieces. Over TCP the second piece waits for
the acknowledgement of the first, which takes 40 ms in every task (Nagle's algorithm and delayed
acknowledgements). Spark supports Unix sockets from 4.1 on; before, it ignores the setting.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

#: Read once, when an application starts.
UNIX_SOCKETS = "spark.python.unix.domain.socket.enabled"
#: If one of these is set, the user, spark-submit or a folder of settings configures where Spark
#: runs.
_ELSEWHERE = ("PYSPARK_GATEWAY_PORT", "SPARK_HOME", "SPARK_CONF_DIR", "SPARK_REMOTE", "MASTER")
#: With one of these, other programs may start workers; those of RAPIDS support TCP alone.
_OTHER_WORKERS = ("spark.plugins", "spark.python.daemon.module", "spark.remote")
#: Sends rows ahead; its first version supports TCP alone (SPARK-57948).
_PIPELINED = "spark.python.udf.pipelined.enabled"


def socket_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the setting of Unix domain sockets where it is safe: on Linux, with a local master.

    Parameters
    ----------
    settings : mapping of str to str
        Of the application that is to start. Nothing is returned unless its master is local, and
        nothing if it names plugins or another daemon of workers.
    """
    if sys.platform != "linux" or is_configured_elsewhere():
        return {}
    if any(name in settings for name in (*_OTHER_WORKERS, _PIPELINED)):
        return {}
    is_local = settings.get("spark.master", "").startswith("local")
    return {UNIX_SOCKETS: "true"} if is_local else {}


def is_configured_elsewhere() -> bool:
    """Whether the environment configures Spark, too."""
    return any(os.environ.get(name) for name in _ELSEWHERE)
