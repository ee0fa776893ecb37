"""The package as users ship it: ``--py-files``, or a packed environment as ``--archives``."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster.applications import settings
from tests.cluster.standalone import SPARK_HOME, Cluster

ROOT = Path(__file__).parents[2]
JOB = ROOT / "tests" / "cluster" / "job.py"
#: What workers import besides PySpark, which is the cluster's, with the versions that are here.
LEAST = ("numba", "numpy", "pandas", "pyarrow")
#: What a worker is told: neither this checkout nor this environment.
_NOT_SHIPPED = ("PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "VIRTUAL_ENV")
#: What the executors call a packed environment.
_ENVIRONMENT = "environment"


@dataclass(frozen=True)
class Shipped:
    """How an application is submitted.

    Parameters
    ----------
    arguments : tuple of str
        Of spark-submit.
    driver, workers : str
        The Python of the driver and of the workers.
    """

    arguments: tuple[str, ...]
    driver: str
    workers: str


def wheel(folder: Path) -> Path:
    """Build the wheel."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(folder)]
    subprocess.run([*command, str(ROOT)], check=True)
    (found,) = folder.glob("gpu_windows-*.whl")
    return found


def by_py_files(folder: Path, built: Path) -> Shipped:
    """Ship the wheel to workers whose Python has all that it needs, and not the package."""
    python = _bare(folder / "bare")
    libraries = Path(python).parents[1] / "lib" / f"python{sysconfig.get_python_version()}"
    # what is installed here, without the links of this environment to editable packages
    here = sysconfig.get_path("purelib")
    (libraries / "site-packages" / "here.pth").write_text(here)
    package = folder / "gpu_windows.zip"
    shutil.copy(built, package)
    return Shipped(("--py-files", str(package)), python, python)


def by_archive(folder: Path, built: Path) -> Shipped:
    """Ship an environment with what workers import, to nodes that have the same Python and Spark.

    The driver's side of a stream that follows the clock starts the workers' Python too: the driver
    runs where the environment lies unpacked under the name that it has on executors.
    """
    python = _bare(folder / "unpacked")
    environment = Path(python).parents[1]
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet"]
    versions = [f"{name}=={_version(name)}" for name in LEAST]
    subprocess.run([*pip, "venv-pack", *versions], check=True)
    subprocess.run([*pip, "--no-deps", str(built)], check=True)
    packed = folder / "environment.tar.gz"
    packing = [str(environment / "bin" / "venv-pack"), "--quiet", "-o", str(packed)]
    subprocess.run([*packing, "-p", str(environment)], check=True)
    (folder / _ENVIRONMENT).mkdir()
    shutil.unpack_archive(packed, folder / _ENVIRONMENT, filter="fully_trusted")
    archive = f"{packed}#{_ENVIRONMENT}"
    workers = f"./{_ENVIRONMENT}/bin/python"
    return Shipped(("--archives", archive), workers, workers)


WAYS: dict[str, Callable[[Path, Path], Shipped]] = {
    "py-files": by_py_files,
    "archives": by_archive,
}


def submit(
    cluster: Cluster, folder: Path, shipped: Shipped, more: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Submit `tests.cluster.job` from a folder; return what it has printed."""
    made = settings(cluster, folder / "events", {"spark.log.level": "ERROR", **(more or {})})
    pythons = {
        "spark.pyspark.driver.python": shipped.driver,
        "spark.pyspark.python": shipped.workers,
    }
    command = [str(SPARK_HOME / "bin" / "spark-submit"), *shipped.arguments]
    for name, value in {**made, **pythons}.items():
        command += ["--conf", f"{name}={value}"]
    environment = {name: value for name, value in os.environ.items() if name not in _NOT_SHIPPED}
    run = subprocess.run(
        [*command, str(JOB)],
        cwd=folder,
        env={**environment, "SPARK_HOME": str(SPARK_HOME)},
        capture_output=True,
        text=True,
        check=False,
    )
    return told_by(run)


def told_by(run: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """Return what `tests.cluster.job` has printed."""
    found = [line for line in run.stdout.splitlines() if line.startswith("FOUND ")]
    if run.returncode or not found:
        raise AssertionError((run.stdout + run.stderr)[-6_000:])
    told: dict[str, Any] = json.loads(found[0].removeprefix("FOUND "))
    return told


def _bare(folder: Path) -> str:
    """Make an environment without packages; return its Python."""
    command = [sys.executable, "-m", "venv", "--without-pip", str(folder)]
    subprocess.run(command, check=True)
    return str(folder / "bin" / "python")


def _version(name: str) -> str:
    from importlib.metadata import version

    return version(name)


def contents(built: Path) -> list[str]:
    """Return the names of the files in a wheel."""
    with zipfile.ZipFile(built) as archive:
        return archive.namelist()
