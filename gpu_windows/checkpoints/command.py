"""The command ``gpu-windows state``: from a path to an exit status."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from gpu_windows.checkpoints import read_state
from gpu_windows.checkpoints.report import as_json, show
from gpu_windows.errors import GpuWindowsError

if TYPE_CHECKING:
    from gpu_windows.annotations import SparkSession

OK, BAD_INPUT = 0, 2


def run(
    checkpoint: str, *, batch: int | None, operator: int | None, details: bool, json: bool
) -> int:
    """Read a checkpoint and report.

    Parameters
    ----------
    checkpoint, batch, operator
        See `gpu_windows.read_state`.
    details : bool
        Whether to tell of every shard and every bucket.
    json : bool
        Whether to write JSON instead of tables.

    Returns
    -------
    int
        The exit status: 2 if the checkpoint cannot be read, else 0.
    """
    console, errors = Console(), Console(stderr=True)
    try:
        with _told(errors, checkpoint), _session() as spark:
            found = read_state(spark, checkpoint, batch=batch, operator=operator)
    except (GpuWindowsError, ImportError) as error:
        errors.print(Text(f"bad input: {error}"), soft_wrap=True)
        return BAD_INPUT
    if json:
        console.print(
            as_json(found, details=details), soft_wrap=True, markup=False, highlight=False
        )
    else:
        show(console, found, details=details)
    return OK


def _told(errors: Console, checkpoint: str) -> AbstractContextManager[object]:
    """Tell what takes its time: while it lasts, or once where nobody watches."""
    if errors.is_terminal:
        return errors.status("Reading the state", spinner="dots")
    errors.print(Text(f"Spark reads all of the state in {checkpoint}"), soft_wrap=True)
    return nullcontext()


@contextmanager
def _session() -> Iterator[SparkSession]:
    """Take the session that runs, or start one for a while, its workers on this Python."""
    from pyspark.sql import SparkSession

    from gpu_windows.spark_glue import local_session
    from gpu_windows.spark_glue.settings import SETTINGS

    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    cores = os.cpu_count() or 1
    settings = {**SETTINGS, "spark.sql.shuffle.partitions": str(cores)}
    session = local_session.start("gpu-windows state", cores=cores, settings=settings)
    try:
        yield session
    finally:
        session.stop()
