"""Shows Python files of the application (``--py-files``) to the one worker that misses them.

Spark adds them to the path of its workers, but for the one that it starts on the driver before the
first micro-batch of a stream with state (``transform_with_state_driver_worker.py``, PySpark 4.0 to
4.3). That one knows what stands in ``PYTHONPATH``. On executors there is nothing at that path.
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


def show_py_files(session: SparkSession) -> None:
    """Have workers find the application's Python files where the driver finds them.

    It must come before what the workers run is handed to Spark. Nothing happens where there are
    none, nor on Spark Connect, whose server knows nothing of the client's path.
    """
    context = getattr(session, "sparkContext", None)
    if context is None:
        return
    found = _py_files(Path(SparkFiles.getRootDirectory()))
    before = [path for path in context.environment.get(_PATH, "").split(os.pathsep) if path]
    if missing := [path for path in found if path not in before]:
        context.environment[_PATH] = os.pathsep.join([*missing, *before])


def _py_files(root: Path) -> list[str]:
    """Return what is on this process's path of the files that Spark keeps in a folder."""
    packages = [path for path in sys.path if Path(path).parent == root and Path(path).is_file()]
    return [*packages, str(root)] if packages or any(root.glob("*.py")) else []
