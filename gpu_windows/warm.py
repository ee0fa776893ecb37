"""The command ``gpu-windows warm``: compile kernels now, into the cache of this machine."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.table import Table

from gpu_windows.kernels.backend import select
from gpu_windows.kernels.compile import cache_directory
from gpu_windows.kernels.warm import warm


@dataclass(frozen=True)
class Compiled:
    """A kernel that was compiled or found in the cache.

    Parameters
    ----------
    backend : {"cpu", "cuda"}
        What it was compiled for.
    kernel : str
        Module and name.
    seconds : float
        Time of the compilation; close to 0 if it was in the cache.
    """

    backend: str
    kernel: str
    seconds: float


def run(*, as_json: bool) -> int:
    """Compile the CPU kernels, and the CUDA kernels if a device can be used; print the times."""
    console, backend = Console(), select("auto")
    packages = ["cpu"] if backend.name == "cpu" else ["cpu", "cuda"]
    compiled = [Compiled(package, *timed) for package in packages for timed in warm(package)]
    if as_json:
        console.print_json(json.dumps([asdict(kernel) for kernel in compiled]))
        return 0
    console.print(_table(compiled))
    for package in packages:
        seconds = [kernel.seconds for kernel in compiled if kernel.backend == package]
        console.print(f"{package}: {len(seconds)} kernels in {sum(seconds):.1f} s")
    if "cuda" not in packages:
        console.print(f"cuda: nothing to compile for, {backend.reason}", soft_wrap=True)
    console.print(f"They are kept in {cache_directory()}", soft_wrap=True)
    return 0


def _table(compiled: list[Compiled]) -> Table:
    """Return a table of kernels, the slowest first."""
    table = Table(box=None, pad_edge=False)
    table.add_column("back end")
    table.add_column("kernel")
    table.add_column("seconds", justify="right")
    for kernel in sorted(compiled, key=lambda kernel: -kernel.seconds):
        table.add_row(kernel.backend, kernel.kernel, f"{kernel.seconds:.2f}")
    return table
