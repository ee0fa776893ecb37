"""The benchmarks, one file each: module ``X`` holds the ``BENCHMARK`` of name ``X``."""

from __future__ import annotations

import pkgutil
from importlib import import_module

from benchmarks.contest import Benchmark


def names() -> tuple[str, ...]:
    """Return the names of the benchmarks, which are those of the files in this folder."""
    return tuple(module.name for module in pkgutil.iter_modules(__path__))


def load(name: str) -> Benchmark:
    """Import a benchmark and the engines that it needs, no others.

    Raises
    ------
    ValueError
        If there is no benchmark of that name.
    """
    if name not in names():
        message = f"a benchmark must be one of {', '.join(names())}, got {name!r}"
        raise ValueError(message)
    benchmark: Benchmark = import_module(f"{__name__}.{name}").BENCHMARK
    return benchmark
