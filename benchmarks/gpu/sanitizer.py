"""A few small tests under compute-sanitizer: memory accesses, races, memory that nothing wrote."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

from benchmarks.gpu.pytest_runs import PYTEST, counted, without_pytest
from benchmarks.gpu.scene import Row, Scene

#: The first matters most, and may take all the time.
_TOOLS = ("memcheck", "racecheck", "initcheck")
#: cuda-bindings asks a driver for functions of newer ones; it is refused, which is no error.
_FLAGS = {"memcheck": ("--report-api-errors", "no")}
#: Of the small tests those of kernels; the others take many launches for each.
_CHOSEN = "test_small and not inputs"
#: Seconds with which a tool gets anywhere, and what is left after it for writing its row.
_LEAST, _SPARE = 25.0, 6.0


def run(scene: Scene) -> Iterator[Row]:
    """Yield what every tool found, or that no time was left for it."""
    if shutil.which("compute-sanitizer") is None:
        yield {"what": "compute-sanitizer", "missing": "compute-sanitizer on PATH"}
        return
    if (row := without_pytest()) is not None:
        yield row
        return
    for tool in () if scene.dry else _TOOLS:
        what, left = f"compute-sanitizer {tool}", scene.left
        if left < _LEAST:
            yield {"what": what, "left_out": f"{left:.0f} s are left, it takes {_LEAST:.0f}"}
            continue
        command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9"]
        command += [*_FLAGS.get(tool, ()), *PYTEST, "tests/gpu", "-m", "gpu", "-k", _CHOSEN]
        found = counted(command, left - _SPARE, HYPOTHESIS_PROFILE="sanitizer")
        yield {"what": what, **found}
