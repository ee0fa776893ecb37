"""A few small tests under compute-sanitizer: memory accesses, races, memory that nothing wrote."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

from benchmarks.gpu.checks import PYTEST, SMALL, counted, without_pytest
from benchmarks.gpu.scene import Row, Scene

#: The first matters most.
_TOOLS = ("memcheck", "racecheck", "initcheck")
#: Of the small tests those of kernels; the others take many launches for each.
_CHOSEN = f"{SMALL} and not inputs"


def run(scene: Scene) -> Iterator[Row]:
    """Yield what every tool found."""
    if shutil.which("compute-sanitizer") is None:
        yield {"what": "compute-sanitizer", "missing": "compute-sanitizer on PATH"}
        return
    if (row := without_pytest()) is not None:
        yield row
        return
    for number, tool in enumerate(() if scene.dry else _TOOLS):
        seconds = max(scene.left - 1.0, 0.1) / (len(_TOOLS) - number)
        command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9"]
        command += [*PYTEST, "-m", "gpu", "-k", _CHOSEN]
        found = counted(command, seconds, HYPOTHESIS_PROFILE="simulated quick")
        yield {"what": f"compute-sanitizer {tool}", **found}
