"""The C compiler with which PTX runs; nothing else is imported to find it."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from functools import cache
from importlib.util import find_spec

#: What a machine without one lacks.
MISSING = "needs a C compiler: gcc, cc or clang on PATH, CC, or the package ziglang"


@cache
def find_compiler() -> tuple[str, ...] | None:
    """Return the command of a C compiler: ``$CC``, gcc, cc, clang, or Zig's from PyPI; or None."""
    if chosen := shlex.split(os.environ.get("CC", "")):
        return tuple(chosen) if shutil.which(chosen[0]) else None
    for name in ("gcc", "cc", "clang"):
        if found := shutil.which(name):
            return (found,)
    return (sys.executable, "-m", "ziglang", "cc") if find_spec("ziglang") else None
