"""The wheel and the sdist hold what the tree holds, and work where there is no checkout."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from collections.abc import Iterable, Iterator
from email import message_from_string
from email.message import Message
from pathlib import Path, PurePosixPath
from sysconfig import get_paths

import pytest
from packaging.requirements import Requirement

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "gpu_windows"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
#: A link or a picture of Markdown: what is before the brackets, and where it leads.
LINK = re.compile(r"(!?)\[[^\]]*\]\(([^)\s]+)\)")
#: The first example of the README and what it prints.
EXAMPLE = re.compile(r"```python\n(.*?)```\s*```text\n(.*?)```", re.DOTALL)

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


def needs_hatchling() -> None:
    """Skip without what builds the package, which is of the extra `test`."""
    for module in ("hatchling", "hatch_fancy_pypi_readme"):
        pytest.importorskip(module, reason="what builds the package is of the extra `test`")


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
    needs_hatchling()
    archive = build(ROOT, "sdist", tmp_path_factory.mktemp("sdist"))
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(archive) as files:
        files.extractall(folder, filter="data")
    (tree,) = folder.iterdir()
    return tree


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel."""
    needs_hatchling()
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


def metadata_of(wheel: Path) -> Message:
    """Return what an index of packages shows of a wheel."""
    with zipfile.ZipFile(wheel) as files:
        (name,) = (each for each in files.namelist() if each.endswith(".dist-info/METADATA"))
        return message_from_string(files.read(name).decode())


def test_the_readme_of_the_metadata_has_absolute_links_to_files_of_the_tag(wheel: Path) -> None:
    text = metadata_of(wheel).get_payload()
    assert isinstance(text, str)
    repository, version = PROJECT["urls"]["Repository"], PROJECT["version"]
    raw = repository.replace("//github.com/", "//raw.githubusercontent.com/")
    links = LINK.findall(text)
    assert len(links) == len(LINK.findall((ROOT / "README.md").read_text())) > 30
    for picture, target in links:
        begin = f"{raw}/v{version}/" if picture else f"{repository}/blob/v{version}/"
        assert target.startswith(begin), target
        assert (ROOT / target.removeprefix(begin).partition("#")[0]).exists(), target
    assert {picture for picture, _ in links} == {"", "!"}


def test_the_sdist_says_the_same_as_the_wheel(sdist: Path, wheel: Path) -> None:
    of_sdist = message_from_string((sdist / "PKG-INFO").read_text())
    of_wheel = metadata_of(wheel)
    assert of_sdist.items() == of_wheel.items()
    assert of_sdist.get_payload() == of_wheel.get_payload()


def test_markers_of_requirements_are_there(wheel: Path) -> None:
    """Builders may drop the marker of an extra that is asked for by another."""
    requirements = [Requirement(each) for each in metadata_of(wheel).get_all("Requires-Dist", [])]
    sketches = [each for each in requirements if each.name == "datasketches" and each.marker]
    for extra in ("test", "dev"):
        for version, wanted in (("3.13", True), ("3.14", False)):
            where = {"extra": extra, "python_version": version}
            asked = [each.marker.evaluate(where) for each in sketches if each.marker]
            assert any(asked) is wanted, (extra, version)


def test_an_sdist_holds_what_a_checkout_has_at_its_root(sdist: Path) -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("what is tracked is asked of git")
    command = ["git", "ls-files"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    tracked = {PurePosixPath(name).parts[0] for name in done.stdout.splitlines()}
    assert tracked - {"kernels", "spark_glue"} <= {path.name for path in sdist.iterdir()}


def environment(folder: Path) -> Path:
    """Make a virtual environment that has the libraries of this one, not its gpu_windows."""
    venv.create(folder, with_pip=True, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    # Folders of a .pth file are searched, but .pth files within them are not read.
    (site / "libraries.pth").write_text(get_paths()["purelib"] + "\n")
    return folder


def run_outside(folder: Path, command: list[str], **variables: str) -> str:
    """Run a command in a folder that is no checkout; return what it prints."""
    hidden = ("PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_HOME", "VIRTUAL_ENV")
    visible = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(
        command,
        cwd=folder,
        env={**visible, **variables},
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.spark
def test_an_installed_wheel_runs_the_readme_on_spark(wheel: Path, tmp_path: Path) -> None:
    bin_ = environment(tmp_path / "env") / "bin"
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    run_outside(tmp_path, [str(bin_ / "python"), *install])
    where = [str(bin_ / "python"), "-c", "import gpu_windows; print(gpu_windows.__file__)"]
    assert run_outside(tmp_path, where).startswith(str(tmp_path))
    found = EXAMPLE.search((ROOT / "README.md").read_text())
    assert found is not None
    (tmp_path / "job.py").write_text(found[1])
    active = {"SPARK_LOCAL_IP": "127.0.0.1", "PATH": f"{bin_}:{os.environ['PATH']}"}
    output = run_outside(tmp_path, [str(bin_ / "python"), "job.py"], **active)
    assert output.strip() == found[2].strip()
    report = run_outside(tmp_path, ["gpu-windows", "doctor"], **active)
    assert re.search(r"^\d+ ok(, \d+ warn, 0 fail)?$", report, re.MULTILINE), report


@pytest.mark.slow
@pytest.mark.spark
def test_make_test_works_in_an_sdist(sdist: Path) -> None:
    """As in a checkout, in an environment that is installed already."""
    environment(sdist / ".venv")
    stamp = "{ cat pyproject.toml && printf '%s %s' \"$PWD\" ''; } | cksum | tr -d '\\n'"
    key = subprocess.run(["sh", "-c", stamp], cwd=sdist, capture_output=True, check=True).stdout
    (sdist / ".venv" / "installed-dev").write_bytes(key)
    some = "tests/rules tests/test_ci.py tests/docs/test_links.py tests/kernels/test_contract.py"
    summary = run_outside(sdist, ["make", "test", f"ARGS=-q -n 0 -p no:cacheprovider {some}"])
    assert re.search(r"\b\d+ passed\b", summary)
    assert " failed" not in summary
