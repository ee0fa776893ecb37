"""The tests that need a device: a process a file, so that a broken context ends one file only."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from benchmarks.gpu.pytest_runs import NONE_CHOSEN, PYTEST, counted, without_pytest
from benchmarks.gpu.scene import Row, Scene

#: At once: more would wait for the device.
_WORKERS = 4
_FOLDER = Path("tests", "gpu")
#: Of a file that is not named here small tests come later. Moves between host and device, threads
#: and streams come first, for no CPU can stand in for them.
_ORDER = ("staging", "kernels", "keys", "joins")
_LARGE = "test_large or test_many"
#: Whose tests are of what runs at the same time: no launch of theirs may wait for its kernel.
_TOGETHER = ("staging",)
#: Seconds that are left for writing rows, after tests that were interrupted have ended.
_SPARE = 6.0


@dataclass(frozen=True)
class Part:
    """The small tests of a file, or its large ones.

    Parameters
    ----------
    file : Path
    large : bool
    """

    file: Path
    large: bool

    @property
    def about(self) -> str:
        """What of the package the file tests."""
        return self.file.stem.removeprefix("test_").removesuffix("_gpu")

    @property
    def command(self) -> list[str]:
        """How its tests are run."""
        chosen = _LARGE if self.large else f"not ({_LARGE})"
        return [*PYTEST, str(self.file), "-m", "gpu", "-k", chosen]

    @property
    def variables(self) -> dict[str, str]:
        """Of the environment: small tests wait for every kernel, so that an error names it."""
        waits = not self.large and self.about not in _TOGETHER
        return {"CUDA_LAUNCH_BLOCKING": "1"} if waits else {}


def run(scene: Scene) -> Iterator[Row]:
    """Yield what pytest found in every file: all the small tests come first."""
    if (row := without_pytest()) is not None:
        yield row
        return
    chosen = [part for part in parts() if not (part.large and scene.dry)]
    with ThreadPoolExecutor(_WORKERS) as pool:
        calls = {pool.submit(_found, scene, part): part for part in chosen}
        for call in as_completed(calls):
            part, found = calls[call], call.result()
            if not (part.large and found.get("failed_with") == NONE_CHOSEN):
                size = "large" if part.large else "small"
                yield {"what": f"pytest, {size}: {part.about}", **found}


def parts(folder: Path = _FOLDER) -> list[Part]:
    """Return what is run, in this order."""
    files = sorted(folder.glob("test_*.py"), key=lambda file: file.name)
    small = [Part(file, large=False) for file in files]
    small.sort(key=lambda p: _ORDER.index(p.about) if p.about in _ORDER else len(_ORDER))
    return [*small, *(Part(part.file, large=True) for part in small)]


def _found(scene: Scene, part: Part) -> Row:
    seconds = max(scene.left - _SPARE, 0.1)
    if scene.dry:
        return counted([*part.command, "--collect-only", "-q"], seconds)
    return counted(part.command, seconds, **part.variables)
