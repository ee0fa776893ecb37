"""Checks of this machine and this Python: Java, PySpark and the packages around it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from gpu_windows.doctor.finding import (
    Finding,
    Version,
    fail,
    first_line,
    installed_version,
    ok,
    parse_version,
    run_check,
    warn,
)

#: Oldest Java that Spark 4 runs on, and the module that PySpark asks it for.
JAVA, MODULE = 17, "jdk.incubator.vector"

_LAST_JAVA = 21  # that every Spark 4 is tested with; 25 from 4.2 on
_APT_JAVA = "apt-get install -y openjdk-17-jre-headless (or openjdk-21-jre-headless)"
_PIP_SPARK = "pip install 'gpu-windows[spark]'"
_SECONDS = 60


@dataclass(frozen=True)
class Java:
    """The Java runtime that PySpark would start.

    Parameters
    ----------
    path : str
        Its command.
    version : int
        17 of "17.0.15"; 0 if it did not say.
    modules : frozenset of str
    """

    path: str
    version: int
    modules: frozenset[str]


def find_java() -> Java | str:
    """Ask the Java that PySpark would start; return the problem if it does not answer.

    PySpark takes ``$JAVA_HOME/bin/java``, or ``java`` from PATH where JAVA_HOME is unset.
    """
    home = os.environ.get("JAVA_HOME")
    path = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if path is None:
        return "no `java` on PATH, and JAVA_HOME is unset"
    try:
        # "-version" answers on the standard error, as: openjdk version "17.0.15" 2025-04-15
        answer = _ask(path, "-version").stderr
        modules = _ask(path, "--list-modules").stdout
    except OSError as error:
        return f"JAVA_HOME is {home}, but {path} does not run: {error.strerror}"
    except subprocess.TimeoutExpired:
        return f"{path} does not answer"
    found = re.search(r'version "(\d+)', answer)
    names = frozenset(line.split("@")[0] for line in modules.split())
    return Java(path, int(found[1]) if found else 0, names)


def check_java(java: Java | str, pyspark: Version) -> Finding:
    """Check the Java runtime: its version, and the module that PySpark needs."""
    if isinstance(java, str):
        mend = "unset JAVA_HOME, or set it to a Java 17" if "JAVA_HOME is /" in java else _APT_JAVA
        return fail("Java", java, mend)
    found = f"Java {java.version}, {java.path}"
    if java.version < JAVA:
        return fail("Java", f"{found}; Spark 4 needs {JAVA} or newer", _APT_JAVA)
    if MODULE not in java.modules:
        return fail("Java", f"{found}; it lacks the module {MODULE}", _APT_JAVA)
    if java.version > _LAST_JAVA and pyspark and pyspark < (4, 2):
        return warn("Java", f"{found}; Spark before 4.2 is tested with 17 and 21", _APT_JAVA)
    return ok("Java", found)


def check_pyspark(version: str | None) -> Finding:
    """Check that PySpark is there and supported (4.0 and newer, below 5)."""
    if version is None:
        return fail("PySpark", "not installed", _PIP_SPARK)
    if not (4,) <= parse_version(version) < (5,):
        return fail("PySpark", f"{version}; supported are 4.0 and newer, below 5", _PIP_SPARK)
    return ok("PySpark", version)


def check_pandas(version: str | None) -> Finding:
    """Check pandas: PySpark up to 4.3 wants it below 3."""
    if version is None:
        return fail("pandas", "not installed; PySpark needs it", _PIP_SPARK)
    if parse_version(version) >= (3,):
        return fail("pandas", f"{version}; PySpark needs it below 3", "pip install 'pandas<3'")
    return ok("pandas", version)


def check_arrow(version: str | None) -> Finding:
    """Check PyArrow."""
    if version is None or parse_version(version) < (18,):
        found = "not installed" if version is None else f"{version}; PySpark needs 18"
        return fail("Arrow", found, "pip install 'pyarrow>=18'")
    return ok("Arrow", f"pyarrow {version}")


def check_numba(version: str | None) -> Finding:
    """Check that Numba, which compiles the CPU kernels, can be imported."""
    if version is None:
        return fail("Numba", "not installed", "pip install 'numba>=0.61'")
    try:
        import numba
    except ImportError as error:  # it refuses a NumPy that is too new for it
        mend = "pip install --upgrade numba numpy"
        return fail("Numba", f"{version} cannot be imported: {first_line(error)}", mend)
    return ok("Numba", f"{numba.__version__}, {numba.get_num_threads()} threads")


def check_kernel_cache(directory: Path) -> Finding:
    """Check that compiled kernels are kept where the next process finds them."""
    if directory.is_relative_to(tempfile.gettempdir()):
        mend = "export GPU_WINDOWS_CACHE_DIR=DIRECTORY, one that workers may write to"
        return warn("Kernel cache", f"{directory} is temporary: compiled again and again", mend)
    count = len(list(directory.rglob("*.nbc")))
    return ok("Kernel cache", f"{directory}, writable, {count} compiled kernels")


def check_python(version: Version = sys.version_info[:3]) -> Finding:
    """Check the Python of the driver."""
    found = f"{'.'.join(map(str, version))}, {sys.executable}"
    if version < (3, 11):
        return fail("Python", f"{found}; 3.11 or newer is needed", "use Python 3.11 or newer")
    return ok("Python", found)


def check_worker_command(command: str | None) -> Finding:
    """Check that Spark's workers take the Python of this process.

    Parameters
    ----------
    command : str, optional
        ``PYSPARK_PYTHON``; None if unset: workers take ``python3`` from PATH.
    """
    name, mend = "Python of workers", f"export PYSPARK_PYTHON={sys.executable}"
    setting = f"PYSPARK_PYTHON={command}" if command else "PYSPARK_PYTHON is unset: python3 on PATH"
    path = shutil.which(command or "python3")
    if path is None:
        return fail(name, f"{setting} cannot be found", mend)
    if not Path(path).exists() or not Path(path).samefile(sys.executable):
        return warn(name, f"{setting} is {path}, not the driver's", mend)
    if Path(path).parent != Path(sys.executable).parent:  # a link out of another environment
        return warn(name, f"{setting} is {path}, of another environment", mend)
    return ok(name, setting)


def host_findings(pyspark: str | None) -> list[Finding]:
    """Run every check of this module.

    Parameters
    ----------
    pyspark : str, optional
        Its version.
    """
    return [
        check_java(find_java(), parse_version(pyspark or "")),
        check_pyspark(pyspark),
        check_pandas(installed_version("pandas")),
        check_python(),
        check_worker_command(os.environ.get("PYSPARK_PYTHON")),
        check_arrow(installed_version("pyarrow")),
        check_numba(installed_version("numba")),
        run_check("Kernel cache", _kernel_cache),
    ]


def _kernel_cache() -> Finding:
    from gpu_windows.kernels.compile import cache_directory

    return check_kernel_cache(cache_directory())


def _ask(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
