"""CuPy: imported in one place, of a version that can be relied on, with its cache beside ours."""

from __future__ import annotations

import importlib
import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gpu_windows.kernels.compile import cache_directory

#: The oldest CuPy that kernels run with. Earlier ones sort wrongly, without an error, where device
#: memory runs out (https://github.com/cupy/cupy/issues/9894); batches are halved on that error.
OLDEST = (14, 1, 1)

#: Environment variable: the folder of the kernels that CuPy compiles. CuPy reads it when it is
#: imported, and makes that folder: by default one in the home, where that may be impossible.
CACHE_VARIABLE = "CUPY_CACHE_DIR"

_IMPORTING = threading.Lock()


def load_cupy() -> Any:
    """Import CuPy; what it compiles is cached beside our kernels unless the user says where.

    Raises
    ------
    ImportError
        If it cannot be imported.
    """
    with _IMPORTING:
        if "cupy" in sys.modules:  # perhaps another thread imports it just now: wait
            return importlib.import_module("cupy")
        with _cached_beside_ours():
            return importlib.import_module("cupy")


@contextmanager
def _cached_beside_ours() -> Iterator[None]:
    """Set `CACHE_VARIABLE` while CuPy is imported, and no longer: no child process inherits it."""
    if CACHE_VARIABLE in os.environ:
        yield
        return
    os.environ[CACHE_VARIABLE] = str(cache_directory() / "cupy")
    try:
        yield
    finally:
        os.environ.pop(CACHE_VARIABLE, None)


def why_too_old(version: str) -> str | None:
    """Return why a version of CuPy is refused, such as "13.6.0"; None if it is not."""
    if parse(version) >= OLDEST:
        return None
    oldest = ".".join(map(str, OLDEST))
    return (
        f"CuPy {version} sorts wrongly where device memory runs out: install CuPy {oldest} or "
        "newer, as gpu-windows[cu13] or [cu12] does"
    )


def parse(version: str) -> tuple[int, ...]:
    """Return the first three numbers of a version."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])
