"""The tests that need a device, as they are and under compute-sanitizer."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec

from benchmarks.gpu.scene import Row, Scene

#: Without the project's settings, which want plugins that a bare machine lacks.
_PYTEST = (
    *(sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir", ".", "-q"),
    *("-p", "no:cacheprovider", "-o", "markers=gpu spark connect ptx slow smoke thorough"),
    *("--import-mode", "importlib", "tests/gpu"),
)
_TOOLS = ("memcheck", "initcheck", "racecheck")


def run(scene: Scene) -> Iterator[Row]:
    """Yield what pytest and every tool of compute-sanitizer found."""
    missing = [name for name in ("pytest", "hypothesis") if find_spec(name) is None]
    if missing:
        yield {"what": "pytest", "missing": f"the packages {', '.join(missing)}"}
        return
    share = scene.seconds / (1 + len(_TOOLS))
    chosen = ["--collect-only"] if scene.dry else ["-m", "gpu"]
    yield {"what": "pytest", **_counted([*_PYTEST, *chosen], share)}
    if shutil.which("compute-sanitizer") is None:
        yield {"what": "compute-sanitizer", "missing": "compute-sanitizer on PATH"}
        return
    if scene.dry:
        return
    for tool in _TOOLS:
        command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9"]
        found = _counted([*command, *_PYTEST, "-m", "gpu", "-k", "small"], share)
        yield {"what": f"compute-sanitizer {tool}", **found}


def _counted(command: list[str], seconds: float) -> Row:
    """Run tests; return the counts of the last line, and the end of the output if any failed."""
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return {"failed": f"it took longer than {seconds:.0f} s"}
    words = ("passed", "failed", "error", "skipped", "collected")
    counts = re.findall(r"(\d+) (?:tests? )?(\w+)", run.stdout[-400:])
    found: Row = {w: int(n) for n, word in counts for w in words if word.startswith(w)}
    if run.returncode:
        found["failed_with"] = run.returncode
        found["output"] = (run.stdout + run.stderr)[-2000:]
    return found
