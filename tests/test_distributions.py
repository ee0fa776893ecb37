"""The wheel and the sdist hold what the tree holds, and work where there is no checkout."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

import pytest

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "gpu_windows"

#: Run with the unpacked wheel as its first argument: what finds the checkout is taken away, and
#: PySpark too, which a table of Arrow does without.
PROGRAM = """
import sys
from importlib.metadata import Distribution
from pathlib import Path

wheel = sys.argv[1]
others = [each for each in sys.path if not Path(each, "gpu_windows").exists()]
sys.path[:] = [wheel, *others]
sys.modules["pyspark"] = None

import pyarrow as pa
import gpu_windows as gw
from gpu_windows.kernels import backend

assert all(each.__file__.startswith(wheel) for each in (gw, backend))
rows = pa.table({"k": ["a", "b", "a"], "ts": pa.array([10, 20, 70], pa.timestamp("s", "UTC"))})
timed = gw.stream(rows).event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
minutes = timed.key_by("k").window(gw.TumblingEventTimeWindows.of("1 minute"))
assert sorted(minutes.aggregate(n=gw.count())["k"].to_pylist()) == ["a", "a", "b"]

(folder,) = Path(wheel).glob("*.dist-info")
scripts = {each.name: each.load() for each in Distribution.at(folder).entry_points}
assert {*scripts} == {"gpu-windows", "gpu-windows-gpus"}, scripts
sys.argv = ["gpu-windows", "--help"]
scripts["gpu-windows"]()
"""


def build(source: Path, target: str, folder: Path) -> Path:
    """Build a distribution of a source tree with the hatchling that is here; no network."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    subprocess.run(command, cwd=source, check=True, capture_output=True, timeout=60)
    (made,) = folder.iterdir()
    return made


def modules(names: Iterable[str]) -> set[str]:
    """Return the files of the package among these, which are none of Python's caches."""
    return {
        name
        for name in names
        if name.startswith(f"{PACKAGE}/") and "__pycache__" not in PurePosixPath(name).parts
    }


def in_tree() -> Iterator[str]:
    """Yield the files of the package, those behind its two links too, as a wheel calls them."""
    links = {PACKAGE: f"{PACKAGE}/"}
    for folder in ("kernels", "spark_glue"):
        if (ROOT / folder).exists():  # not in an sdist, where the links are folders
            links[folder] = f"{PACKAGE}/"
    for folder, before in links.items():
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and path.suffix in (".py", ".typed"):
                inside = path.relative_to(ROOT).as_posix()
                yield inside if folder == PACKAGE else before + inside


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked sdist."""
    pytest.importorskip("hatchling", reason="hatchling is of the extra `test`")
    archive = build(ROOT, "sdist", tmp_path_factory.mktemp("sdist"))
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(archive) as files:
        files.extractall(folder, filter="data")
    (tree,) = folder.iterdir()
    return tree


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel."""
    pytest.importorskip("hatchling", reason="hatchling is of the extra `test`")
    return build(ROOT, "wheel", tmp_path_factory.mktemp("wheel"))


def names_of(wheel: Path) -> set[str]:
    """Return the names of the files of a wheel."""
    with zipfile.ZipFile(wheel) as files:
        return {*files.namelist()}


def test_a_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = names_of(wheel)
    assert modules(names) == {*in_tree()}
    others = {PurePosixPath(name).parts[0] for name in names} - {PACKAGE}
    assert [each.endswith(".dist-info") for each in others] == [True]


def test_an_sdist_holds_the_package_without_links(sdist: Path) -> None:
    found = (path for path in sdist.rglob("*") if path.is_file())
    assert not any(path.is_symlink() for path in sdist.rglob("*"))
    assert modules(path.relative_to(sdist).as_posix() for path in found) == {*in_tree()}


def test_an_sdist_makes_the_same_wheel(sdist: Path, wheel: Path, tmp_path: Path) -> None:
    again = build(sdist, "wheel", tmp_path / "again")
    assert again.name == wheel.name
    assert names_of(again) == names_of(wheel)


def test_a_wheel_runs_where_there_is_no_checkout(wheel: Path, tmp_path: Path) -> None:
    installed = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as files:
        files.extractall(installed)
    command = [sys.executable, "-I", "-c", PROGRAM, str(installed)]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Usage: gpu-windows" in done.stdout
