"""How Spark writes the files of a checkpoint on a local disk: without processes of their own.

By default it asks Hadoop's `FileContext` to rename them, which runs ``readlink`` on a local disk
where Hadoop's native library is missing, as it is beside PySpark. The other manager that Spark has
renames by the `FileSystem`. On a local disk both write a hidden file and rename it once it is
whole, and both look first whether the name is taken; but it makes folders that are missing, where
the other fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING

from gpu_windows.errors import OutputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Setting of Spark: what writes the files of checkpoints.
MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_PACKAGE = "org.apache.spark.sql.execution.streaming"
_BY_FILE_SYSTEM = "FileSystemBasedCheckpointFileManager"
#: Is held while a query of ours starts.
_STARTS = Lock()
#: Seconds that a query waits for another one to start: longer than any start takes.
_PATIENCE = 120.0


@contextmanager
def renaming_quickly(session: SparkSession, checkpoint: str) -> Iterator[None]:
    """Have a query that is started meanwhile rename by the `FileSystem`, if its disk is local.

    A manager that the user has set is left. The setting is the session's, and a query takes it when
    it starts: no other of ours starts meanwhile, for elsewhere renames may not replace files.

    Parameters
    ----------
    session : SparkSession
    checkpoint : str
        Its URI.

    Raises
    ------
    OutputError
        Where a listener starts a query in ``onQueryStarted``: the one that it hears of has not
        started before the listener returns.
    """
    if not _STARTS.acquire(timeout=_PATIENCE):
        raise OutputError(
            "another query has not started yet: start none in onQueryStarted of a listener",
            value=checkpoint,
        )
    try:
        if not checkpoint.startswith("file:") or session.conf.get(MANAGER, None) is not None:
            yield
            return
        ours = _manager(session.version)
        session.conf.set(MANAGER, ours)
        try:
            yield
        finally:
            if session.conf.get(MANAGER, None) == ours:
                session.conf.unset(MANAGER)
    finally:
        _STARTS.release()


def _manager(version: str) -> str:
    """Return the class of a version of Spark's; 4.1 moved it."""
    moved = not version.startswith("4.0.")
    return ".".join([_PACKAGE, *(["checkpointing"] if moved else []), _BY_FILE_SYSTEM])
