"""How Spark writes the files of a checkpoint on a local disk: without processes of their own.

By default it asks Hadoop's `FileContext` to rename them, which runs ``readlink`` on a local disk
where Hadoop's native library is missing, as it is beside PySpark: three processes for a file, five
files and one for each partition of state in a micro-batch. The other manager that Spark has renames
by the `FileSystem`. On a local disk both write a hidden file and rename it once it is whole, and
both look first whether the name is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Setting of Spark: what writes the files of checkpoints.
MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_PACKAGE = "org.apache.spark.sql.execution.streaming"
_BY_FILE_SYSTEM = "FileSystemBasedCheckpointFileManager"


@contextmanager
def renaming_quickly(session: SparkSession, checkpoint: str) -> Iterator[None]:
    """Have a query that is started meanwhile rename by the `FileSystem`, if its disk is local.

    A manager that the user has set is left.

    Parameters
    ----------
    session : SparkSession
    checkpoint : str
        Its URI.
    """
    if not checkpoint.startswith("file:") or session.conf.get(MANAGER, None) is not None:
        yield
        return
    session.conf.set(MANAGER, _manager(session.version))
    try:
        yield
    finally:
        session.conf.unset(MANAGER)


def _manager(version: str) -> str:
    """Return the class of a version of Spark's; 4.1 moved it."""
    moved = not version.startswith("4.0.")
    return ".".join([_PACKAGE, *(["checkpointing"] if moved else []), _BY_FILE_SYSTEM])
