"""Compile every CUDA kernel to machine code with no GPU and no driver; report what it takes.

``python -m tests.kernels.ptx_report --markdown docs/ptxas.md --json ptxas.json`` writes the table.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from time import thread_time
from typing import Any

from gpu_windows.kernels.cuda.compiler import ptx
from gpu_windows.kernels.cuda.kernel import CudaKernel, all_kernels

#: Compute capabilities of Turing, Ampere, Hopper and Blackwell.
CAPABILITIES = ((7, 5), (8, 0), (9, 0), (10, 0))

#: The PyPI package that carries ptxas.
PTXAS_PACKAGE = "nvidia-cuda-nvcc"


@dataclass(frozen=True)
class Usage:
    """What one kernel takes on one architecture.

    Parameters
    ----------
    kernel : str
        Module and name.
    lane : str
        "int64" or "float64", where a kernel is compiled for both; else empty.
    arch : str
        Such as "sm_90".
    registers : int
        A thread.
    stack, spill_stores, spill_loads : int
        Bytes a thread.
    seconds : float
        Processor time that Numba and NVVM took to PTX.
    """

    kernel: str
    lane: str
    arch: str
    registers: int
    stack: int
    spill_stores: int
    spill_loads: int
    seconds: float


class PtxasError(Exception):
    """A kernel that ptxas refuses."""


def find_ptxas() -> Path | None:
    """Return the ptxas of the PyPI package, else the one on PATH, else None."""
    try:
        files = metadata.files(PTXAS_PACKAGE) or []
    except metadata.PackageNotFoundError:
        files = []
    packaged = [Path(str(file.locate())) for file in files if file.name in ("ptxas", "ptxas.exe")]
    on_path = shutil.which("ptxas")
    return next(iter(packaged), Path(on_path) if on_path else None)


def ptxas_version(ptxas: Path) -> str:
    """Return the release of ptxas, such as "13.5.37"."""
    text = subprocess.run([ptxas, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"V(\d+(?:\.\d+)+)", text)
    return found[1] if found else "unknown"


def measure(
    ptxas: Path,
    capabilities: Iterable[tuple[int, int]] = CAPABILITIES,
    kernels: Mapping[str, CudaKernel] | None = None,
) -> Iterator[Usage]:
    """Compile every kernel, or these, for every capability; raise `PtxasError` for one that fails.

    The PTX comes from Numba in this thread, while ptxas runs beside it.
    """
    chosen = all_kernels() if kernels is None else kernels
    with ThreadPoolExecutor(2) as pool:
        waiting = [
            pool.submit(_assemble, ptxas, name, _lane(kernel, i), capability, code, seconds)
            for capability in capabilities
            for name, kernel in chosen.items()
            for i, signature in enumerate(kernel.signatures)
            for code, seconds in [_timed(kernel, signature, capability)]
        ]
        for usage in waiting:
            yield usage.result()


def _timed(kernel: CudaKernel, signature: Any, capability: tuple[int, int]) -> tuple[str, float]:
    """Return a kernel's PTX, and the processor time that this thread took for it."""
    began = thread_time()
    code = ptx(kernel.definition, signature, capability)
    return code, thread_time() - began


def _lane(kernel: CudaKernel, index: int) -> str:
    """Return the type of a kernel's output where it is compiled for several."""
    return str(kernel.signatures[index][-1].dtype) if len(kernel.signatures) > 1 else ""


def _assemble(
    ptxas: Path, name: str, lane: str, capability: tuple[int, int], code: str, seconds: float
) -> Usage:
    arch = f"sm_{capability[0]}{capability[1]}"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "kernel.ptx")
        source.write_text(code)
        command = [str(ptxas), "-v", f"-arch={arch}", str(source), "-o", f"{source}.cubin"]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise PtxasError(f"{name} for {arch}: {run.stderr}")
    return Usage(name, lane, arch, *_numbers(run.stderr), seconds)


def _numbers(log: str) -> tuple[int, int, int, int]:
    """Read registers, stack, spill stores and spill loads off what ``ptxas -v`` says."""
    registers = re.search(r"Used (\d+) registers", log)
    bytes_ = re.search(
        r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", log
    )
    if registers is None or bytes_ is None:
        raise PtxasError(f"ptxas says nothing of registers or spills: {log}")
    stack, stores, loads = map(int, bytes_.groups())
    return int(registers[1]), stack, stores, loads


def to_json(usages: Sequence[Usage]) -> str:
    """Return a list of objects with the fields of `Usage`."""
    return json.dumps([asdict(usage) for usage in usages], indent=1) + "\n"


def to_markdown(usages: Sequence[Usage], version: str) -> str:
    """Return a page with a row a kernel and a column an architecture."""
    arches = list(dict.fromkeys(usage.arch for usage in usages))
    by_kernel: dict[tuple[str, str], dict[str, Usage]] = {}
    for usage in usages:
        by_kernel.setdefault((usage.kernel, usage.lane), {})[usage.arch] = usage
    spilling = sum(usage.spill_stores + usage.spill_loads > 0 for usage in usages)
    lines = [
        "# Registers and spills of the CUDA kernels",
        "",
        f"Registers a thread, from `ptxas -v` {version} over the PTX that Numba makes, without a "
        f"GPU. {len(usages)} compilations, {spilling} with spills (shown as +stores/loads, in "
        "bytes). Made by `python -m tests.kernels.ptx_report`; `tests/kernels/test_ptx.py` states "
        "the bounds.",
        "",
        f"| kernel | lane | {' | '.join(arches)} |",
        f"| --- | --- |{' ---: |' * len(arches)}",
    ]
    for (kernel, lane), row in by_kernel.items():
        cells = " | ".join(_cell(row[arch]) for arch in arches)
        lines.append(f"| `{kernel}` | {lane} | {cells} |")
    return "\n".join(lines) + "\n"


def _cell(usage: Usage) -> str:
    if usage.spill_stores + usage.spill_loads == 0:
        return str(usage.registers)
    return f"{usage.registers} +{usage.spill_stores}/{usage.spill_loads}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the report; 2 if there is no ptxas."""
    parser = argparse.ArgumentParser(prog="python -m tests.kernels.ptx_report", description=__doc__)
    parser.add_argument("--markdown", type=Path, help="file to write the table to")
    parser.add_argument("--json", type=Path, help="file to write the numbers to")
    options = parser.parse_args(arguments)
    ptxas = find_ptxas()
    if ptxas is None:
        sys.stderr.write(f"there is no ptxas; pip install {PTXAS_PACKAGE}\n")
        return 2
    usages = list(measure(ptxas))
    page = to_markdown(usages, ptxas_version(ptxas))
    if options.json:
        options.json.write_text(to_json(usages))
    if options.markdown:
        options.markdown.write_text(page)
    else:
        sys.stdout.write(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
