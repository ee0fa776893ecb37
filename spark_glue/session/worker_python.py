"""The Python of Spark's workers on this machine: which one, its path, and whether it suits."""

from __future__ import annotations

import json
import os
import shutil
import site
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark import SparkFiles

from gpu_windows.errors import WorkerPythonError
from gpu_windows.spark_glue.session.sockets import is_configured_elsewhere

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

PYTHON = "PYSPARK_PYTHON"
#: The same as a setting, which only spark-submit reads: PySpark reads the environment.
_SETTING = "spark.pyspark.python"
#: What PySpark runs if nothing is configured.
_DEFAULT = "python3"
_PATH = "PYTHONPATH"
#: Modules without which no worker can run a query.
WORKER_MODULES = (__name__.partition(".")[0], "pyarrow", "numba")
#: Prints the minor version and which of the modules are missing.
_PROBE = """
import json, sys
from importlib.util import find_spec
missing = [name for name in sys.argv[1:] if find_spec(name) is None]
print(json.dumps([list(sys.version_info[:2]), missing]))
"""
#: The value of `PYTHON` that this process set itself, if it did: the user configured nothing then.
_own: set[str] = set()


def use_this_python(settings: Mapping[str, str]) -> None:
    """Make Spark's workers on this machine use this Python.

    Otherwise Spark runs ``python3`` from ``PATH``, which is another one if an environment is not
    activated. ``spark.pyspark.python`` among the settings takes precedence. Nothing happens if the
    environment or a cluster configures it.

    Parameters
    ----------
    settings : mapping of str to str
        Of the session to be created.
    """
    if os.environ.get(PYTHON) in _own:  # of an earlier builder, which may have had another
        del os.environ[PYTHON]
    _own.clear()
    if os.environ.get(PYTHON) or is_configured_elsewhere() or "spark.remote" in settings:
        return
    if _SETTING in settings or settings.get("spark.master", "local").startswith("local"):
        os.environ[PYTHON] = settings.get(_SETTING, sys.executable)
        _own.add(os.environ[PYTHON])


def use_this_python_in(builder: SparkSession.Builder) -> None:
    """Do the same for a builder, if it has a master: without one it may still get any."""
    settings = getattr(builder, "_options", {})
    if "spark.master" in settings or _SETTING in settings:
        use_this_python(settings)


def prepare_workers(session: SparkSession) -> None:
    """Make workers on this machine run this Python, with the modules that it finds.

    Spark runs ``python3`` from ``PATH`` in a session that nobody has configured, which is another
    Python if an environment is not activated. Functions made after this call run in this Python;
    ``spark.pyspark.python`` of the session takes precedence. Folders from which this process
    imports, such as that of its script, are added to the ``PYTHONPATH`` of its workers.

    Call it before functions for workers are created. Workers on other machines, and those of Spark
    Connect, are left as they are: see `gpu_windows.spark_glue.tasks.worker_step`.

    Raises
    ------
    WorkerPythonError
        If ``PYSPARK_PYTHON`` is a Python without this package, which was not sent to it either.
    """
    context = getattr(session, "sparkContext", None)
    if context is None or not (session.conf.get("spark.master", None) or "").startswith("local"):
        return
    if not os.environ.get(PYTHON) and context.pythonExec == _DEFAULT:
        context.pythonExec = session.conf.get(_SETTING, None) or sys.executable or _DEFAULT
    path = shutil.which(context.pythonExec)
    if path == sys.executable:
        _add_folders(context, import_folders())
    elif path is not None:
        _check_python(path, _worker_path(context))


def python_of(session: SparkSession) -> str:
    """Return what ``PYSPARK_PYTHON`` should be, and where it is read."""
    if getattr(session, "sparkContext", None) is None:
        return "a Python that has it, where the server of Spark Connect is started"
    return f"a Python that has it before the program starts; the driver's is {sys.executable}"


def import_folders() -> list[str]:
    """Return the folders from which this process imports, without those that its Python has."""
    own = {*sysconfig.get_paths().values(), *site.getsitepackages(), site.getusersitepackages()}
    library = sysconfig.get_path("stdlib")
    spark = SparkFiles.getRootDirectory()
    return [
        path
        for path in dict.fromkeys(sys.path)
        if Path(path).is_absolute()
        and path not in own
        and not path.startswith((library, spark))
        and Path(path).exists()
    ]


def _add_folders(context: SparkContext, folders: Sequence[str]) -> None:
    """Add folders to the path of workers, in this process's order, before what they inherit."""
    before = _split_path(context)
    inherited = os.environ.get(_PATH, "").split(os.pathsep)
    missing = [path for path in folders if path not in before]
    if {*missing} - {*inherited}:
        context.environment[_PATH] = os.pathsep.join([*before, *missing])


def add_py_files(session: SparkSession) -> None:
    """Add Python files of the application to the ``PYTHONPATH`` of the one worker without them.

    Spark adds those of ``--py-files`` to the path of its workers, except the one that it starts on
    the driver before the first micro-batch of a stream with state
    (``transform_with_state_driver_worker.py``, PySpark 4.0 to 4.3). That one reads ``PYTHONPATH``.
    On executors the added path does not exist.

    Call it before functions for workers are created. It does nothing if there are no such files,
    nor on Spark Connect, whose server does not see the client's path.
    """
    context = getattr(session, "sparkContext", None)
    if context is None:
        return
    before = _split_path(context)
    found = _py_files(Path(SparkFiles.getRootDirectory()))
    if missing := [path for path in found if path not in before]:
        context.environment[_PATH] = os.pathsep.join([*missing, *before])


def _py_files(root: Path) -> list[str]:
    """Return the files of Spark's folder that are on this process's path."""
    packages = [path for path in sys.path if Path(path).parent == root and Path(path).is_file()]
    return [*packages, str(root)] if packages or any(root.glob("*.py")) else []


def _split_path(context: SparkContext) -> list[str]:
    """Return the ``PYTHONPATH`` that was set for workers."""
    return [path for path in context.environment.get(_PATH, "").split(os.pathsep) if path]


def _worker_path(context: SparkContext) -> str:
    """Return the ``PYTHONPATH`` of workers, with the files that were sent to them."""
    root = Path(SparkFiles.getRootDirectory())
    sent = [str(path) for path in root.glob("*") if path.suffix in (".zip", ".egg", ".jar")]
    set_before = [context.environment.get(_PATH), os.environ.get(_PATH)]
    return os.pathsep.join([str(root), *sent, *filter(None, set_before)])


@cache
def _check_python(python: str, path: str) -> None:
    """Raise `WorkerPythonError` if a Python cannot run workers, given its ``PYTHONPATH``."""
    command = [python, "-c", _PROBE, *WORKER_MODULES]
    environment = {**os.environ, _PATH: path}
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=20, check=False, env=environment
        )
        version, missing = json.loads(done.stdout)
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return  # it is no Python that could be asked: Spark reports it better
    fix = f"export {PYTHON}={sys.executable} before the program starts, or unset it"
    runs = f"Spark's workers on this machine run {python}"
    if missing:
        raise WorkerPythonError(f"{runs}, which does not find {', '.join(missing)}: {fix}")
    if tuple(version) != sys.version_info[:2]:
        own = ".".join(map(str, sys.version_info[:2]))
        rule = f"{runs}, which must have the minor version of this Python, {own}: {fix}"
        raise WorkerPythonError(rule, value=".".join(map(str, version)))
