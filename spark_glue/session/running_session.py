"""Settings of a session that exists already: some can be changed, others are of its application."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from gpu_windows.errors import InvalidOptionError
from gpu_windows.spark_glue.session.sockets import UNIX_SOCKETS, socket_settings
from gpu_windows.spark_glue.session.worker_python import prepare_workers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

#: The first Spark with Unix domain sockets.
_HAS_SOCKETS = (4, 1)
#: Settings that `socket_settings` reads.
_READ = ("spark.master", "spark.plugins", "spark.python.daemon.module", "spark.remote")
_HOW = (
    "an application reads it when it starts, so this session keeps what it has. To have it, stop()"
    " this session and make the next one by gpu_windows.session() or of"
    " gpu_windows.configure(SparkSession.builder.master(...))"
)


def configure_session(
    session: SparkSession, settings: Mapping[str, str], gpus: Mapping[str, str]
) -> SparkSession:
    """Change the settings of a session that can be changed, and warn of those that cannot.

    Parameters
    ----------
    session : pyspark.sql.SparkSession
    settings : mapping of str to str
        Those to change.
    gpus : mapping of str to str
        Settings of GPUs, which only a new application can have.

    Raises
    ------
    InvalidOptionError
        If the application has other settings of GPUs.
    WorkerPythonError
        If the configured Python of workers on this machine lacks the package.
    """
    if other := [name for name, value in gpus.items() if session.conf.get(name, None) != value]:
        rule = (
            f"gpu= sets {', '.join(other)}, which an application reads when it starts: stop() this"
            " session, make the next one of gpu_windows.configure(SparkSession.builder, gpu=...)"
        )
        raise InvalidOptionError(rule)
    prepare_workers(session)
    fixed = [name for name, value in settings.items() if not _change(session, name, value)]
    if not gpus:
        fixed += _missing_sockets(session)
    if fixed:
        logger.warning("%s: %s", ", ".join(dict.fromkeys(fixed)), _HOW)
    return session


def _change(session: SparkSession, name: str, value: str) -> bool:
    """Set a value; return whether the session has it now."""
    try:
        session.conf.set(name, value)
    except AnalysisException:
        return session.conf.get(name, None) == value
    return True


def _missing_sockets(session: SparkSession) -> list[str]:
    """Return the setting of Unix sockets, if the application lacks it and could have it."""
    version = tuple(int(part) for part in session.version.split(".")[:2])
    if version < _HAS_SOCKETS or session.conf.get(UNIX_SOCKETS, None) is not None:
        return []
    found = {name: session.conf.get(name, None) for name in _READ}
    return [*socket_settings({name: value for name, value in found.items() if value is not None})]
