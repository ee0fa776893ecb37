"""Compile every CUDA kernel to machine code with no GPU and no driver; report what it takes.

ptxas and nvdisasm are of the extra `ptx`.

``python -m tests.kernels.ptx_report --markdown docs/ptxas.md --json ptxas.json`` writes the table.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Container, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from time import thread_time
from typing import Any, NamedTuple, TypeAlias

from numba import types

from gpu_windows.kernels.cuda.compiler import ptx, suffix
from gpu_windows.kernels.cuda.kernel import CudaKernel, all_kernels
from tests.kernels.ptx_table import to_markdown
from tests.kernels.sass import count
from tests.kernels.usage import Usage

Capability: TypeAlias = tuple[int, int]

#: Compute capabilities of Turing, Ampere, Hopper and Blackwell.
CAPABILITIES: tuple[Capability, ...] = ((7, 5), (8, 0), (9, 0), (10, 0))

#: The PyPI packages that carry the tools.
PACKAGES = {"ptxas": "nvidia-cuda-nvcc", "nvdisasm": "nvidia-cuda-nvdisasm"}


class Tools(NamedTuple):
    """Programs of the CUDA toolkit: the assembler and the disassembler."""

    ptxas: Path
    nvdisasm: Path


class _Unit(NamedTuple):
    """The PTX of a kernel for a capability; ``seconds``: what it took, see `Usage`."""

    kernel: str
    lane: str
    capability: Capability
    ptx: str
    seconds: float


class PtxasError(Exception):
    """A kernel that ptxas or nvdisasm refuses."""


def find_tools() -> Tools | None:
    """Return the tools of the PyPI packages, else those on PATH; None if one is missing."""
    ptxas, nvdisasm = (_find(name, package) for name, package in PACKAGES.items())
    return None if ptxas is None or nvdisasm is None else Tools(ptxas, nvdisasm)


def _find(name: str, package: str) -> Path | None:
    try:
        files = metadata.files(package) or []
    except metadata.PackageNotFoundError:
        files = []
    packaged = [Path(str(file.locate())) for file in files if file.stem == name]
    on_path = shutil.which(name)
    return next(iter(packaged), Path(on_path) if on_path else None)


def ptxas_version(ptxas: Path) -> str:
    """Return the release of ptxas, such as "13.5.37"."""
    text = subprocess.run([ptxas, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"V(\d+(?:\.\d+)+)", text)
    return found[1] if found else "unknown"


def measure(
    tools: Tools,
    capabilities: Sequence[Capability] = CAPABILITIES,
    kernels: Mapping[str, CudaKernel] | None = None,
    disassembled: Container[Capability] = CAPABILITIES,
) -> Iterator[Usage]:
    """Compile every kernel, or these, for every capability; raise `PtxasError` for one that fails.

    The PTX comes from Numba in this thread, while the tools run beside it. Instructions are counted
    for the ``disassembled`` capabilities alone: nvdisasm takes six times as long as ptxas.
    """
    chosen = all_kernels() if kernels is None else kernels
    with ThreadPoolExecutor(2) as pool:
        waiting = [
            pool.submit(_assemble, tools, unit, counts=unit.capability in disassembled)
            for name, kernel in chosen.items()
            for i in range(len(kernel.signatures))
            for unit in _units(name, kernel, i, capabilities)
        ]
        for usage in waiting:
            yield usage.result()


def _units(
    name: str, kernel: CudaKernel, index: int, capabilities: Sequence[Capability]
) -> Iterator[_Unit]:
    """Yield the PTX of a kernel for each capability.

    Numba lowers a kernel once, for the first of them, as it does with the functions that kernels
    call (`compiling_for`); NVVM makes the PTX of each capability from that.
    """
    signature, lane = kernel.signatures[index], _lane(kernel, index)
    first, *others = capabilities
    with _gathered_libraries() as libraries:
        began = thread_time()
        code = ptx(kernel.definition, signature, first)
        seconds = thread_time() - began
    yield _Unit(name, lane, first, code, seconds)
    (library,) = libraries
    for capability in others:
        began = thread_time()
        (code,) = library.get_asm_strs(cc=(*capability, suffix(capability)))
        yield _Unit(name, lane, capability, code, thread_time() - began)


@contextmanager
def _gathered_libraries() -> Iterator[list[Any]]:
    """Gather what Numba asks NVVM to make PTX of."""
    library: Any = importlib.import_module("numba.cuda.codegen").CUDACodeLibrary
    gathered, generate = [], library.get_asm_strs

    def get_asm_strs(self: Any, cc: Any = None) -> Any:
        gathered.append(self)
        return generate(self, cc)

    library.get_asm_strs = get_asm_strs
    try:
        yield gathered
    finally:
        library.get_asm_strs = generate


def _lane(kernel: CudaKernel, index: int) -> str:
    """Return the type of a kernel's output where it is compiled for several."""
    if len(kernel.signatures) == 1:
        return ""
    output = kernel.signatures[index][-1]
    return str((output[0] if isinstance(output, types.BaseTuple) else output).dtype)


def _assemble(tools: Tools, unit: _Unit, *, counts: bool) -> Usage:
    name, (major, minor) = unit.kernel, unit.capability
    arch = f"sm_{major}{minor}{suffix(unit.capability)}"
    with tempfile.TemporaryDirectory() as folder:
        source, binary = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(unit.ptx)
        log = _run(name, [tools.ptxas, "-v", f"-arch={arch}", source, "-o", binary]).stderr
        found = count(_run(name, [tools.nvdisasm, "-c", binary]).stdout) if counts else None
    return Usage(name, unit.lane, arch, *_numbers(log), found, unit.seconds)


def _run(name: str, command: Sequence[str | Path]) -> subprocess.CompletedProcess[str]:
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise PtxasError(f"{name}: {' '.join(map(str, command))}: {run.stderr}")
    return run


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


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the report; 2 if a tool is missing."""
    parser = argparse.ArgumentParser(prog="python -m tests.kernels.ptx_report", description=__doc__)
    parser.add_argument("--markdown", type=Path, help="file to write the table to")
    parser.add_argument("--json", type=Path, help="file to write the numbers to")
    options = parser.parse_args(arguments)
    tools = find_tools()
    if tools is None:
        sys.stderr.write(
            f"ptxas or nvdisasm is missing; pip install {' '.join(PACKAGES.values())}\n"
        )
        return 2
    usages = list(measure(tools))
    page = to_markdown(usages, ptxas_version(tools.ptxas))
    if options.json:
        options.json.write_text(to_json(usages))
    if options.markdown:
        options.markdown.write_text(page)
    else:
        sys.stdout.write(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
