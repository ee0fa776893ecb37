"""Compiled kernels are code: they are kept only where nobody else could have put them."""

from __future__ import annotations

import inspect
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpu_windows import rules
from gpu_windows.kernels import compile as compiling
from gpu_windows.kernels.argument_types import Scalar
from gpu_windows.kernels.private_folder import NotPrivateError, private_folder
from gpu_windows.kernels.sources import relocate_source, sources
from gpu_windows.rules import pattern_matching, window_operator

ROOT = Path(__file__).parents[2]
LOGGER = "gpu_windows.kernels.compile"


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A temporary folder for all, and a home that cannot be written to."""
    home, shared = tmp_path / "home", tmp_path / "tmp"
    home.touch()
    shared.mkdir()
    shared.chmod(0o1777)
    monkeypatch.delenv(compiling.CACHE_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    monkeypatch.setattr("tempfile.tempdir", str(shared))
    compiling.cache_directory.cache_clear()
    yield shared
    compiling.cache_directory.cache_clear()


def ours(shared: Path) -> Path:
    return shared / f"gpu_windows-{os.geteuid()}"


def kernels_in(root: Path) -> Path:
    return root / "kernels" / compiling.fingerprint()


def refused(caplog: pytest.LogCaptureFixture, root: Path, *reasons: str) -> Path:
    """Check that kernels go to a fresh folder, and why that was said, once; return it."""
    found = compiling.cache_directory()
    assert compiling.cache_directory() == found
    assert not found.is_relative_to(root)
    assert stat.S_IMODE(found.stat().st_mode) == 0o700
    (message,) = [record.message for record in caplog.records if record.name == LOGGER]
    assert all(reason in message for reason in reasons), message
    return found


def test_folders_are_made_for_this_user_alone(shared: Path) -> None:
    before = os.umask(0)
    try:
        found = compiling.cache_directory()
    finally:
        os.umask(before)
    assert found == kernels_in(ours(shared))
    for folder in (found, found.parent, found.parent.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    compiling.cache_directory.cache_clear()
    assert compiling.cache_directory() == found


@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("mode", [0o777, 0o720])
def test_a_folder_that_others_may_write_to(
    shared: Path, caplog: pytest.LogCaptureFixture, depth: int, mode: int
) -> None:
    folder = kernels_in(ours(shared))
    folder.mkdir(parents=True)
    open_one = [folder, *folder.parents][depth]
    open_one.chmod(mode)
    refused(caplog, ours(shared), f"others may write to {open_one},", f"{mode:o}")


def test_a_link(shared: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    kernels_in(tmp_path / "theirs").mkdir(parents=True)
    ours(shared).symlink_to(tmp_path / "theirs")
    found = refused(caplog, ours(shared), f"{ours(shared)} is a link")
    assert found.parent == shared
    assert not any(kernels_in(tmp_path / "theirs").iterdir())


def test_a_folder_of_another_user(
    shared: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder has our name and is theirs: as a process of the next user would find it."""
    me = os.geteuid()
    theirs = shared / f"gpu_windows-{me + 1}"
    kernels_in(theirs).mkdir(parents=True, mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    if me != 0:  # else the temporary folder is root's, as it should be
        monkeypatch.setattr("gpu_windows.kernels.private_folder._ROOT", me)
    refused(caplog, theirs, f"belongs to user {me}, not to {me + 1}")


def test_a_temporary_folder_in_which_folders_can_be_swapped(
    shared: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shared.chmod(0o777)
    refused(caplog, ours(shared), f"in {shared} others may rename")


@pytest.mark.parametrize("mode", [0o777, 0o775])
def test_a_folder_above_in_which_folders_can_be_swapped(tmp_path: Path, mode: int) -> None:
    """Also where the folder itself is in order, and where only the group may."""
    base = tmp_path / "above" / "base"
    base.mkdir(parents=True)
    base.parent.chmod(mode)
    with pytest.raises(NotPrivateError, match=f"in {base.parent} others may rename"):
        private_folder(base, "x")
    base.parent.chmod(0o755)
    assert private_folder(base, "x") == base / "x"


def test_a_link_to_a_base_is_resolved(tmp_path: Path) -> None:
    """It may be turned to another folder later."""
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there")
    assert private_folder(tmp_path / "link", "x") == tmp_path / "there" / "x"


def test_the_folder_that_was_asked_for(
    shared: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    chosen = tmp_path / "chosen" / "one"
    monkeypatch.setenv(compiling.CACHE_VARIABLE, str(chosen))
    assert compiling.cache_directory() == kernels_in(chosen)
    compiling.cache_directory.cache_clear()
    (chosen / "kernels").chmod(0o777)
    found = refused(caplog, chosen, str(chosen / "kernels"))
    assert found.parent == shared


def test_all_that_kernels_compile_is_in_the_fingerprint() -> None:
    hashed = dict(sources())
    packages: tuple[Any, ...] = (rules, pattern_matching, window_operator)
    for module in [compiling, *(part for package in packages for part in package.COMPILED)]:
        assert inspect.getsource(module).encode() in hashed.values(), module


#: Compiles a kernel and says whether it was in the cache.
COMPILING = """
from gpu_windows.kernels.cpu import reduce
(kernel,) = [k for k in vars(reduce).values() if type(k).__name__ == "Kernel"][:1]
kernel.compile()
print(sum(kernel._compiled.stats.cache_misses.values()) > 0)
"""


def test_of_several_processes_one_compiles(tmp_path: Path) -> None:
    started = [started_compiling(tmp_path, str(ROOT)) for _ in range(3)]
    said = sorted(process.communicate(timeout=200)[0].strip() for process in started)
    assert said == ["False", "False", "True"]


@pytest.mark.thorough
def test_a_zip_file_and_any_folder_share_what_is_compiled(tmp_path: Path) -> None:
    """As executors do, each of which has the package in a folder of its own."""
    places = [tmp_path / name for name in ("one.whl", "executor-0/two.zip", "executor-1/three")]
    zipped(places[0])
    places[1].parent.mkdir()
    shutil.copy(places[0], places[1])
    zipfile.ZipFile(places[0]).extractall(places[2])
    found = []
    for place in places:
        process = started_compiling(tmp_path / "cache", str(place))
        found.append(process.communicate(timeout=200)[0].strip())
    assert found == ["True", "False", "False"]
    assert [*(tmp_path / "cache" / "kernels").iterdir()] == [kernels_in(tmp_path / "cache")]


def zipped(path: Path) -> None:
    """Make a zip file of the package, as a wheel holds it."""
    with zipfile.ZipFile(path, "w") as archive:
        for folder, _, names in os.walk(ROOT / "gpu_windows", followlinks=True):
            for file in (Path(folder) / name for name in names if name.endswith(".py")):
                archive.write(file, file.relative_to(ROOT))


def started_compiling(cache: Path, place: str) -> subprocess.Popen[str]:
    """Start a process that compiles a kernel of the package at a place."""
    environment = {**os.environ, compiling.CACHE_VARIABLE: str(cache), "PYTHONPATH": place}
    command = [sys.executable, "-P", "-c", COMPILING]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, text=True, cwd=cache.parent
    )


def test_a_function_whose_source_is_not_known_is_left_as_it_is(tmp_path: Path) -> None:
    made: dict[str, Any] = {}
    exec("def once(number): return number", made)  # noqa: S102 - as a notebook does
    assert relocate_source(made["once"], tmp_path) is made["once"]
    (tmp_path / "sources").touch()
    assert relocate_source(_twice, tmp_path) is _twice


@pytest.mark.parametrize("has_links", [True, False])
def test_a_source_that_another_process_put_there_meanwhile_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_links: bool
) -> None:
    """By its time Numba knows whether what was compiled from it is stale."""
    temporary, path = tempfile.NamedTemporaryFile, tmp_path / "sources" / f"{__name__}.py"
    found: list[tuple[int, int]] = []

    def after_another(**options: Any) -> Any:
        monkeypatch.setattr("tempfile.NamedTemporaryFile", temporary)
        relocate_source(_twice, tmp_path)
        found.append((path.stat().st_ino, path.stat().st_mtime_ns))
        return temporary(**options)

    def refuse(*_: object) -> None:
        raise OSError("Operation not supported")

    if not has_links:
        monkeypatch.setattr("pathlib.Path.hardlink_to", refuse)
    monkeypatch.setattr("tempfile.NamedTemporaryFile", after_another)
    kept = relocate_source(_twice, tmp_path)
    assert kept.__code__.co_filename == str(path)
    assert [*path.parent.iterdir()] == [path]
    assert found == [(path.stat().st_ino, path.stat().st_mtime_ns)]
    assert path.read_text() == Path(__file__).read_text()
    path.write_text("another text")
    relocate_source(_twice, tmp_path)
    assert path.read_text() == Path(__file__).read_text()
    assert [*path.parent.iterdir()] == [path]


@pytest.mark.parametrize("is_removed", [False, True])
def test_without_locks_each_compiles_for_itself(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    is_removed: bool,
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("No locks available")

    monkeypatch.setenv(compiling.CACHE_VARIABLE, str(tmp_path))
    compiling.cache_directory.cache_clear()
    try:
        folder = compiling.cache_directory()
        if is_removed:
            folder.rmdir()
        else:
            monkeypatch.setattr("fcntl.flock", refuse)
        kernel = compiling.kernel((Scalar("int64"),))(_twice)
        assert kernel(4) == 8
        assert "each process compiles" in caplog.text
    finally:
        compiling.cache_directory.cache_clear()


def _twice(number: int) -> int:
    return 2 * number
