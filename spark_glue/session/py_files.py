"""Adds Python files of the application (``--py-files``) to the path of the one worker without them.

Spark adds them to the path of its workers, except the one that it starts on the driver before the
first micro-batch of a stream with state (``transform_with_state_driver_worker.py``, PySpark 4.0 to
4.3). That one reads ``PYTHONPATH``. On executors the added path does not exist.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark import SparkFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PATH = "PYTHONPATH"


def add_py_files(session: SparkSession) -> None:
    """Add the application's Python files to the ``PYTHONPATH`` of workers.

    Call it before functions for workers are created. It does nothing if there are no such files,
    nor on Spark Connect, whose server does not see the client's path.
    """
    context = getattr(session, "sparkContext", None)
    if context is None:
        return
    found = _py_files(Path(SparkFiles.getRootDirectory()))
    before = [path for path in context.environment.get(_PATH, "").split(os.pathsep) if path]
    if missing := [path for path in found if path not in before]:
        context.environment[_PATH] = os.pathsep.join([*missing, *before])


def _py_files(root: Path) -> list[str]:
    """Return the files of Spark's folder that are on this process's path."""
    packages = [path for path in sys.path if Path(path).parent == root and Path(path).is_file()]
    return [*packages, str(root)] if packages or any(root.glob("*.py")) else []
