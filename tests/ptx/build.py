"""PTX of kernels, and the libraries that a C compiler makes of it; both are kept on disk.

They are in the folder of compiled kernels (`gpu_windows.kernels.compile.cache_directory`), whose
name changes with the sources of kernels.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shlex
import subprocess
import warnings
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from gpu_windows.kernels.compile import cache_directory
from gpu_windows.kernels.cuda.compiler import ptx
from tests.ptx.tools import find_compiler
from tests.ptx.translation import Translation, translate

#: What the kernels' PTX is made for; another by this environment variable: ``"75"``, ``"100"``.
CAPABILITY_VARIABLE = "GPU_WINDOWS_PTX_CAPABILITY"
_CAPABILITY = "90"

_MACHINE = Path(__file__).parent / "machine"
#: ``-march=native`` for `fma`, which is a call without; nothing is contracted by itself.
_FLAGS = (
    "-O1", "-w", "-std=gnu11", "-fwrapv", "-fno-strict-aliasing", "-ffp-contract=off",
    "-march=native", "-shared", "-fPIC",
)  # fmt: skip


class CompilerError(RuntimeError):
    """There is no C compiler, or it refuses what PTX was made."""


def capability() -> tuple[int, int]:
    """Return what PTX is made for."""
    number = int(os.environ.get(CAPABILITY_VARIABLE, _CAPABILITY))
    return number // 10, number % 10


def ptx_of(function: Any, signature: Any) -> str:
    """Return the PTX of a kernel for a signature; that of the package's is kept on disk."""

    def make() -> bytes:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ptx(function, signature, capability()).encode()

    if not function.__module__.startswith("gpu_windows."):
        return make().decode()
    name = f"{function.__module__}.{function.__qualname__}"
    key = (name, str(signature), str(capability()), version("numba-cuda"))
    return _kept(key, "ptx", lambda path: path.write_bytes(make())).read_text()


@cache
def library_of(text: str, *, counting: bool = False) -> tuple[Any, Translation]:
    """Return a kernel's ``run`` as `machine/schedules.h` has it, and what it was translated to.

    Parameters
    ----------
    text : str
        The kernel's PTX.
    counting : bool
        For `tests.ptx.kernel.Mode.WARPS`, and for it alone.
    """
    compiler = find_compiler()
    if compiler is None:
        raise CompilerError("there is no C compiler")
    translation = translate(text)
    code = f"{translation.code}\n{_machine(counting=counting)}"

    def make(path: Path) -> None:
        source = path.with_suffix(".c")
        source.write_text(code)
        command = [*compiler, *_FLAGS, str(source), "-o", str(path), "-lm"]
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        if made.returncode:
            raise CompilerError(f"{shlex.join(command)}: {made.stderr[-2_000:]}")
        source.unlink()

    path = _kept((code, *compiler, *_FLAGS), "so", make)
    run = ctypes.CDLL(str(path)).run
    run.argtypes, run.restype = [ctypes.c_void_p], ctypes.c_int
    return run, translation


@cache
def _machine(*, counting: bool) -> str:
    """Return the C that runs a kernel; what the kernel defines stands before it."""
    system = "".join(
        f"#include <{name}.h>\n" for name in ("math", "setjmp", "stdint", "stdlib", "string")
    )
    parts = ["launch", "memory", "arithmetic", "schedules"]
    if counting:
        parts, system = [*parts, "warps"], f"#define COUNTING\n{system}"
    return system + "".join((_MACHINE / f"{name}.h").read_text() for name in parts)


def _kept(key: tuple[str, ...], suffix: str, make: Callable[[Path], object]) -> Path:
    """Return a file of the cache; make it, under another name first, if it is not there."""
    folder = cache_directory() / "ptx"
    folder.mkdir(exist_ok=True)
    digest = hashlib.sha256("\0".join(key).encode()).hexdigest()[:24]
    path = folder / f"{digest}.{suffix}"
    if not path.exists():
        own = folder / f"{digest}-{os.getpid()}.{suffix}"
        make(own)
        own.replace(path)
    return path
