"""The tests that need a device: small ones first, for a step that is cut."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec

from benchmarks.gpu.scene import Row, Scene

#: Without the project's settings, which want plugins that a bare machine lacks.
PYTEST = (
    *(sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir", ".", "-v", "--tb", "short"),
    *("-p", "no:cacheprovider", "--disable-warnings"),
    *("--import-mode", "importlib", "tests/gpu"),
)
SMALL = "test_small"
_WORKERS = 4
_WORDS = ("passed", "failed", "error", "skipped", "collected")


def run(scene: Scene) -> Iterator[Row]:
    """Yield what pytest found, of small tests and of the others."""
    if (row := without_pytest()) is not None:
        yield row
        return
    if scene.dry:
        yield {"what": "pytest", **counted([*PYTEST, "--collect-only", "-q"], scene.left)}
        return
    together = ["-n", str(_WORKERS)] if find_spec("xdist") else []
    for name, chosen in ((SMALL, SMALL), ("the others", f"not {SMALL}")):
        command = [*PYTEST, *together, "-m", "gpu", "-k", chosen]
        # less than is left, so that the row is written before the step is stopped
        found = counted(command, max(scene.left - 1.0, 0.1))
        if not found.get("passed"):  # where there is a device none should be skipped
            found = {"failed_with": "no test passed", **found}
        yield {"what": f"pytest, {name}", **found}


def without_pytest() -> Row | None:
    """Return a row that says which packages of the tests are missing; None if all are there."""
    missing = [name for name in ("pytest", "hypothesis") if find_spec(name) is None]
    if not missing:
        return None
    return {"what": "pytest", "missing": f"the packages {', '.join(missing)}"}


def counted(command: Sequence[str], seconds: float, **variables: str) -> Row:
    """Run tests with more environment variables; return counts.

    Also the end of the output if any failed, or if they took longer than so many seconds.
    """
    environment: Mapping[str, str] = os.environ | variables
    try:
        run = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired as stopped:
        shown = _text(stopped.stdout)
        found = {word: shown.count(f" {word.upper()}") for word in ("passed", "failed")}
        return {**found, "failed_with": f"longer than {seconds:.0f} s", "output": shown[-2000:]}
    counts = re.findall(r"(\d+) (?:tests? )?(\w+)", run.stdout[-400:])
    found = {w: int(n) for n, word in counts for w in _WORDS if word.startswith(w)}
    if run.returncode == 0:
        return found
    return {**found, "failed_with": run.returncode, "output": (run.stdout + run.stderr)[-2000:]}


def _text(shown: str | bytes | None) -> str:
    return shown.decode(errors="replace") if isinstance(shown, bytes) else shown or ""
