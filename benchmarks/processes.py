"""What this process and all that it has started take of the machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

#: Name of the process of a Java virtual machine.
_JVM = "java"
#: Names of the threads of its compilers, as Linux cuts them off; and a setting of Spark with which
#: none of them ends, and takes what it has counted along.
_COMPILERS = ("C1 CompilerThre", "C2 CompilerThre")
STEADY_COMPILERS = {"spark.driver.extraJavaOptions": "-XX:-UseDynamicNumberOfCompilerThreads"}


def cpu_seconds() -> float:
    """Return the processor time that all of them have taken, with those that have ended."""
    taken = _each(lambda process: process.cpu_times(), psutil.Process())
    return float(sum(sum(times[:4]) for times in taken))  # the fifth is time waiting for disks


def compiler_seconds() -> float:
    """Return the processor time of the compilers of the JVM; 0 where Linux does not tell it."""
    pids = _each(lambda process: process.pid if process.name() == _JVM else None)
    tasks = (task for pid in pids if pid for task in _tasks(pid))
    return sum(map(_compiler_ticks, tasks)) / os.sysconf("SC_CLK_TCK")


def _tasks(pid: int) -> Iterable[Path]:
    return Path(f"/proc/{pid}/task").glob("*")


def _compiler_ticks(task: Path) -> int:
    """Return the processor time of a thread, if it is of a compiler."""
    try:
        name, _, rest = (task / "stat").read_text().partition("(")[2].rpartition(") ")
    except (FileNotFoundError, ProcessLookupError):  # it has ended
        return 0
    if name not in _COMPILERS:
        return 0
    fields = rest.split()  # from the third one of the file on
    return int(fields[11]) + int(fields[12])  # user and system


def resident_bytes() -> dict[str, int]:
    """Return resident memory in bytes: ``jvm`` of the JVM, ``workers`` of the Python workers."""
    found = {"jvm": 0, "workers": 0}
    for name, info in _each(lambda process: (process.name(), process.memory_info())):
        found["jvm" if name == _JVM else "workers"] += info.rss
    return found


def _each(ask: Callable[[psutil.Process], Any], *more: psutil.Process) -> list[Any]:
    """Ask everything that this process has started and that is still there."""
    answers = []
    for process in (*more, *psutil.Process().children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            answers.append(ask(process))
    return answers
