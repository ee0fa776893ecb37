"""Where steps run: the folder of compiled kernels that all share, and where CUDA's compiler is."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from benchmarks import machine

#: The environment variable of `gpu_windows.kernels.compile`.
CACHE_VARIABLE = "GPU_WINDOWS_CACHE_DIR"

#: How the names of packages begin that launch kernels.
_LAUNCHING = ("numba", "cuda", "cupy")

_TOOLKIT = Path("/usr/local/cuda")
_ROOT = Path(__file__).parents[2]


def cache_folder() -> Path:
    """Return the folder of this user in which steps keep kernels, also from run to run."""
    return Path(tempfile.gettempdir(), f"gpu_windows-benchmarks-{os.geteuid()}")


def prepare(folder: Path, *, empty: bool) -> None:
    """Make the folder of kernels, for this user alone; take out what is there if it must be cold.

    Kernels of other sources lie there without harm, for the name of their folder is a hash.
    """
    if empty:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def is_warm(folder: Path) -> bool:
    """Whether kernels of these sources, and of this compiler, lie in a folder."""
    from gpu_windows.kernels.compile import fingerprint

    return compiled(folder / "kernels" / fingerprint()) > 0


def compiled(folder: Path | None) -> int:
    """Return how many compiled kernels lie in a folder, one for each signature."""
    return 0 if folder is None else sum(1 for _ in folder.rglob("*.nbc"))


def toolkit(environment: Mapping[str, str]) -> str | None:
    """Return CUDA's folder where numba-cuda must be told of it, or None.

    It looks for libnvvm among packages and in ``CUDA_HOME``, not beside an nvcc that is on PATH.
    """
    if any(environment.get(name) for name in ("CUDA_HOME", "CUDA_PATH")) or _has_nvvm_package():
        return None
    nvcc = shutil.which("nvcc", path=environment.get("PATH"))
    places = [*([Path(nvcc).resolve().parents[1]] if nvcc else []), _TOOLKIT]
    return next((str(place) for place in places if (place / "nvvm").is_dir()), None)


def _has_nvvm_package() -> bool:
    found = find_spec("nvidia")
    places = list(found.submodule_search_locations or []) if found else []
    return any(any(Path(place).glob("*/lib*/libnvvm.so*")) for place in places) or any(
        any(Path(place).glob("*/nvvm/lib*/libnvvm.so*")) for place in places
    )


def of_steps(cache: Path | None) -> dict[str, str]:
    """Return the environment of steps; without a folder they keep kernels where others do."""
    made = dict(os.environ)
    if (home := toolkit(made)) is not None:
        made["CUDA_HOME"] = home
    return made if cache is None else made | {CACHE_VARIABLE: str(cache)}


def commit() -> str:
    """Return the commit that is measured, with a ``+`` if files differ from it; "" without git."""
    try:
        name = _git("rev-parse", "--short", "HEAD")
        return f"{name}+" if _git("status", "--porcelain", "--untracked-files=no") else name
    except (OSError, subprocess.SubprocessError):
        return ""


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(_ROOT), *arguments]
    run = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    return run.stdout.strip()


def versions_in_short() -> str:
    """Return the versions of what launches kernels, in a line."""
    found = machine.versions()
    named = [f"{name} {version}" for name, version in found.items() if name.startswith(_LAUNCHING)]
    return ", ".join([*named, f"driver {driver() or 'none'}"])


def driver() -> str:
    """Return the version of the driver and of the CUDA that it is for; "" if there is none."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
        name = run.stdout.strip().split("\n")[0]
    except (OSError, subprocess.SubprocessError):
        name = ""
    number = ctypes.c_int()
    try:
        known = ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(number)) == 0
    except (OSError, AttributeError):
        known = False
    cuda = f"CUDA {number.value // 1000}.{number.value % 1000 // 10}" if known else ""
    return f"{name} {cuda}".strip()
