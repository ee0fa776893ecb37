"""What this process and all that it has started take of the machine."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psutil

#: Name of the process of a Java virtual machine.
_JVM = "java"


def cpu_seconds() -> float:
    """Return the processor time that all of them have taken, with those that have ended."""
    taken = _each(lambda process: process.cpu_times(), psutil.Process())
    return float(sum(sum(times[:4]) for times in taken))  # the fifth is time waiting for disks


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
