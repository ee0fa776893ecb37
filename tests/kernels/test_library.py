"""CuPy: which versions are taken, and where it caches what it compiles."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpu_windows.kernels.compile import CACHE_VARIABLE
from gpu_windows.kernels.cuda import library, session

ROOT = Path(__file__).parents[2]

#: What CuPy does when it is imported, as of 14.1.1: it makes the folder of its cache.
CUPY = """
import os
folder = os.environ.get("CUPY_CACHE_DIR", os.path.expanduser("~/.cupy/kernel_cache"))
os.makedirs(folder, exist_ok=True)
__version__ = "14.1.1"
"""
ASK = """
import os
from gpu_windows.kernels.cuda.library import load_cupy
cupy = load_cupy()
assert load_cupy() is cupy
print(cupy.folder, os.environ.get("CUPY_CACHE_DIR"), sep="|")
"""


def _ask(tmp_path: Path, **environment: str) -> list[str]:
    """Import CuPy in a process whose home cannot be written to; return its cache's folder."""
    (tmp_path / "cupy.py").write_text(CUPY)
    inherited = {name: text for name, text in os.environ.items() if not name.startswith("CUPY")}
    named = {
        "HOME": "/proc/none",
        "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)]),
        CACHE_VARIABLE: str(tmp_path / "cache"),
    }
    command = [sys.executable, "-c", ASK]
    run = subprocess.run(
        command, env=inherited | named | environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.strip().split("|")


@pytest.mark.ptx
def test_a_home_that_cannot_be_written_to_is_no_reason_against_a_device(tmp_path: Path) -> None:
    folder, left = _ask(tmp_path)
    assert Path(folder).is_relative_to(tmp_path / "cache" / "kernels")
    assert Path(folder).is_dir()
    assert left == "None"  # no child process inherits it


@pytest.mark.ptx
def test_a_folder_that_the_user_chose_is_taken(tmp_path: Path) -> None:
    chosen = str(tmp_path / "chosen")
    assert _ask(tmp_path, CUPY_CACHE_DIR=chosen) == [chosen, chosen]


@pytest.mark.parametrize("version", ["13.6.0", "14.0.1", "14.1.0", "14.1"])
def test_a_version_that_sorts_wrongly_is_refused(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "load_cupy", lambda: SimpleNamespace(__version__=version))
    reason = session._why_no_cuda()
    assert reason == (
        f"CuPy {version} sorts wrongly where device memory runs out: install CuPy 14.1.1 or newer, "
        "as gpu-windows[cu13] or [cu12] does"
    )


@pytest.mark.parametrize("version", ["14.1.1", "14.2.0", "14.1.1rc1", "15.0.0a1"])
def test_later_versions_are_taken(version: str) -> None:
    assert library.why_too_old(version) is None


def test_the_extras_ask_for_what_the_kernels_ask_for() -> None:
    extras: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    asked = [each for name in ("cu12", "cu13") for each in extras[name] if "cupy" in each]
    oldest = ".".join(map(str, library.OLDEST))
    assert asked == [f"cupy-cuda{major}x>={oldest},<15" for major in (12, 13)]
