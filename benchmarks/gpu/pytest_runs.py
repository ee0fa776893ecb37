"""Tests in a process of their own: how many passed, and why the first of them failed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from typing import IO

from benchmarks.gpu.scene import Row

#: Without the project's settings, which want plugins that a bare machine lacks. Failures are told
#: once, in short: a diff of long lists takes longer than the tests do.
PYTEST = (
    *(sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir", ".", "-v", "--tb", "short"),
    *("-p", "no:cacheprovider", "--disable-warnings", "--maxfail", "8", "-rs"),
    *("-o", "verbosity_assertions=0", "--import-mode", "importlib"),
)
#: Status of pytest if no test was chosen.
NONE_CHOSEN = 5
#: Seconds in which tests that are interrupted may tell what failed until then.
_GRACE = 4.0
#: Characters that are kept of the first failures, and of the end.
_FIRST, _END = 3_000, 700
_WORDS = ("passed", "failed", "error", "skipped", "collected")
#: Where failures begin: pytest's, of the interpreter, of compute-sanitizer.
_BEGINS = re.compile(
    r"^=+ (?:FAILURES|ERRORS) =+$|Fatal Python error: |^INTERNALERROR"
    r"|(?<!=)={9} (?!COMPUTE-SANITIZER|ERROR SUMMARY|RACECHECK SUMMARY)\S",
    re.MULTILINE,
)
_SUMMARY = re.compile(r"^.* in \d+\.\d+s.*$", re.MULTILINE)


def without_pytest() -> Row | None:
    """Return a row that says which packages of the tests are missing; None if all are there."""
    missing = [name for name in ("pytest", "hypothesis") if find_spec(name) is None]
    if not missing:
        return None
    return {"what": "pytest", "missing": f"the packages {', '.join(missing)}"}


def counted(command: Sequence[str], seconds: float, **variables: str) -> Row:
    """Run tests with more environment variables; return counts.

    Also the first failures and the end of the output, if any failed, if none passed, or if they
    took longer than so many seconds: then they are interrupted, and tell of those that had failed.
    """
    shown, status = _run(command, seconds, variables)
    found = _counts(shown)
    if status == 0 and (found.get("passed") or found.get("collected")):
        return found
    failed_with: str | int = status or "no test passed"  # none should be skipped on a device
    if status is None:
        failed_with = f"longer than {seconds:.0f} s"
    return {**found, "failed_with": failed_with, "output": reasons(shown)}


def reasons(shown: str) -> str:
    """Return the first failures that an output tells of, and its end."""
    found = _BEGINS.search(shown)
    if found is None:
        return shown[-_FIRST:]
    is_heading = found.group().endswith("=")
    first = shown[found.end() if is_heading else found.start() :].lstrip("= \n")
    if len(first) <= _FIRST + _END:
        return first
    return f"{first[:_FIRST]}\n...\n{first[-_END:]}"


def _counts(shown: str) -> Row:
    """Return the counts of pytest's last line, else those of the tests that were told of."""
    last = _SUMMARY.findall(shown)
    if not last:
        found = {word: shown.count(f" {word.upper()}") for word in ("passed", "failed")}
        return {word: count for word, count in found.items() if count}
    counts = re.findall(r"(\d+)(?:/\d+)? (?:tests? )?(\w+)", last[-1])
    return {w: int(n) for n, word in counts for w in _WORDS if word.startswith(w)}


def _run(
    command: Sequence[str], seconds: float, variables: dict[str, str]
) -> tuple[str, int | None]:
    """Return what a command wrote, and its status; None if it was ended."""
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    environment |= {"COLUMNS": "80", **variables}  # with CI, pytest shortens nothing
    with tempfile.TemporaryFile() as log:  # no pipe: who inherits that may keep it open
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
        status = _within(process, seconds)
        return _text(log), status


def _within(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
    try:
        process.wait(_GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    return None


def _text(log: IO[bytes]) -> str:
    log.seek(0)
    return log.read().decode(errors="replace")
