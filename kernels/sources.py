"""The source of kernels: read wherever the package is, and kept at one place for Numba.

Spark may ship the package as a zip file, or unpack it into another folder for each executor.
"""

from __future__ import annotations

import linecache
import tempfile
from collections.abc import Callable, Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from types import FunctionType
from typing import Any

#: What kernels are made of.
_PACKAGES = ("gpu_windows.rules", "gpu_windows.kernels")


def sources() -> Iterator[tuple[str, bytes]]:
    """Yield the name and the text of every module that kernels are made of, in one order."""
    for package in _PACKAGES:
        yield from _below(files(package), package)


def _below(folder: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    for found in sorted(folder.iterdir(), key=lambda found: found.name):
        if found.is_dir():
            yield from _below(found, f"{name}/{found.name}")
        elif found.name.endswith(".py"):
            yield f"{name}/{found.name}", found.read_bytes()


def relocate_source(function: Callable[..., Any], folder: Path) -> Callable[..., Any]:
    """Return the function as if its source were in a folder, where a copy is put.

    Numba looks for what it has compiled by the path of the source. It finds nothing where that path
    differs from one executor to the next, keeps what it compiles elsewhere where the source is in a
    zip file, and refuses to keep anything where that file is called ``.whl``.

    Parameters
    ----------
    function : callable
        Given back as it is where its source is not known or cannot be written.
    folder : Path
        For compiled kernels, of this user alone.
    """
    code = function.__code__
    text = "".join(linecache.getlines(code.co_filename, function.__globals__))
    path = folder / "sources" / f"{function.__module__}.py"
    if not text or not _write_once(path, text.encode()):
        return function
    moved = FunctionType(
        code.replace(co_filename=str(path)),
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    moved.__module__, moved.__qualname__ = function.__module__, function.__qualname__
    return moved


def _write_once(path: Path, text: bytes) -> bool:
    """Write a text to a path, at once or not at all; return whether it is there."""
    try:
        if _is_there(path, text):
            return True
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(text)
        _link_once(Path(file.name), path, text)
    except OSError:
        return False
    return True


def _is_there(path: Path, text: bytes) -> bool:
    return path.is_file() and path.read_bytes() == text


def _link_once(temporary: Path, path: Path, text: bytes) -> None:
    """Move a file to a path, unless another process has put one there meanwhile.

    Numba holds what was compiled from it for stale once the time of the file is another one.
    """
    try:
        path.hardlink_to(temporary)
    except OSError:  # there is a file, or there are no hard links here
        if not _is_there(path, text):
            temporary.replace(path)
    temporary.unlink(missing_ok=True)
