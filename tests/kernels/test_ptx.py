"""Every CUDA kernel compiles to machine code for four architectures, without a GPU or a driver."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.kernels import ptx_table
from tests.kernels.sass import Instructions
from tests.kernels.usage import Usage

pytestmark = pytest.mark.ptx

#: Environment variable: a folder into which to write the numbers, a file an architecture.
REPORT_VARIABLE = "GPU_WINDOWS_PTX_REPORT"

#: At 128 registers two blocks of 256 threads still run on a multiprocessor (65,536 registers).
MOST_REGISTERS = 128
#: No kernel spills today. A few values may, before somebody must look.
MOST_SPILLED_BYTES = 32
#: Processor seconds to PTX, which every cold worker pays. The slowest takes 6 here on an idle
#: machine; what others do on the same cores may double that.
MOST_SECONDS = 15.0
#: The kernels of the quick lane: a small one, and one that must not divide.
SMALL = ("keys.count_rows", "assign.assign")
#: What the kernels took when the page was made.
PAGE = Path(__file__).parents[2] / "docs" / "ptxas.md"
#: A row of `assign`, with both kinds of slices and nulls. One 64-bit division takes as many.
MOST_TO_ASSIGN = 100


@pytest.mark.timeout(900)  # minutes where others work on the same cores
@pytest.mark.parametrize(
    "disassembled",
    [
        pytest.param([(9, 0)], marks=pytest.mark.thorough),
        pytest.param([(7, 5), (8, 0), (9, 0), (10, 0)], marks=pytest.mark.slow),
    ],
)
def test_every_kernel_compiles_and_stays_in_registers(disassembled: list[tuple[int, int]]) -> None:
    if find_spec("numba_cuda") is None:
        pytest.skip("needs numba-cuda, of the extra `ptx`")
    from gpu_windows.kernels.cuda.kernel import all_kernels
    from tests.kernels import ptx_report

    tools = ptx_report.find_tools()
    if tools is None:
        pytest.skip("needs ptxas and nvdisasm, of the extra `ptx`")
    usages = list(ptx_report.measure(tools, disassembled=disassembled))
    if folder := os.environ.get(REPORT_VARIABLE):
        Path(folder, "ptxas.json").write_text(ptx_report.to_json(usages))

    compiled = sum(len(kernel.signatures) for kernel in all_kernels().values())
    assert len(usages) == compiled * len(ptx_report.CAPABILITIES)
    counted = sum(usage.instructions is not None for usage in usages)
    assert counted == compiled * len(disassembled)
    spilled = [u for u in usages if u.spill_stores + u.spill_loads > MOST_SPILLED_BYTES]
    assert not spilled
    assert not [u for u in usages if u.registers > MOST_REGISTERS]
    assert not [u for u in usages if u.seconds > MOST_SECONDS]
    far = ptx_table.differences(PAGE.read_text(), usages)
    again = "python -m tests.kernels.ptx_report --markdown docs/ptxas.md"
    assert not far, "\n".join([*far, f"if that is as it should be: {again}"])


def test_small_kernels_compile_to_what_the_page_says() -> None:
    """The way from a kernel to machine code; `make check` takes every kernel along it."""
    if find_spec("numba_cuda") is None:
        pytest.skip("needs numba-cuda, of the extra `ptx`")
    from gpu_windows.kernels.cuda.kernel import all_kernels
    from tests.kernels import ptx_report

    tools = ptx_report.find_tools()
    if tools is None:
        pytest.skip("needs ptxas and nvdisasm, of the extra `ptx`")
    kernels = {name: all_kernels()[name] for name in SMALL}
    usages = list(ptx_report.measure(tools, [(9, 0)], kernels))
    assert len(usages) == sum(len(kernel.signatures) for kernel in kernels.values())
    assert all(0 < usage.registers <= MOST_REGISTERS for usage in usages), usages
    page = PAGE.read_text().splitlines()
    of_these = [line for line in page if not line.startswith("| `") or line.split("`")[1] in SMALL]
    assert not ptx_table.differences("\n".join(of_these), usages)
    (assign,) = (usage.instructions for usage in usages if usage.kernel == "assign.assign")
    assert assign is not None
    assert 0 < assign.loop <= MOST_TO_ASSIGN


_WITHOUT_ROW_STACK = """
import numpy as np
vars(np).pop("row_stack", None)
from gpu_windows.kernels.cuda.compiler import ptx
from gpu_windows.kernels.cuda.kernel import all_kernels
kernel = all_kernels()["keys.count_rows"]
print(".target sm_90" in ptx(kernel.definition, kernel.signatures[0], (9, 0)))
print("row_stack" in vars(np))
"""


def test_kernels_compile_where_numpy_has_no_row_stack() -> None:
    """NumPy 2.5 has none, and numba-cuda 0.30 looks it up."""
    if find_spec("numba_cuda") is None:
        pytest.skip("needs numba-cuda, of the extra `ptx`")
    command = [sys.executable, "-c", _WITHOUT_ROW_STACK]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.stdout.split() == ["True", "False"], run.stderr


def test_every_module_with_a_kernel_is_on_the_list() -> None:
    if find_spec("numba_cuda") is None:
        pytest.skip("needs numba-cuda, of the extra `ptx`")
    from gpu_windows.kernels import cuda
    from gpu_windows.kernels.cuda.kernel import all_kernels

    sources = Path(str(cuda.__file__)).parent.glob("*.py")
    decorated = sum(text.count("\n@kernel(") for text in map(Path.read_text, sources))
    # of scans: tiles, together and joins, for each kind of partial; moments of floats and of ints;
    # floats as exponents and as numbers in their order
    templates = 3 * 3 + 2 + 2
    assert len(all_kernels()) - templates == decorated > 0


USAGES = [
    Usage("reduce.fold", "float64", "sm_80", 34, 0, 0, 0, Instructions(200, 58), 0.1),
    Usage("reduce.fold", "float64", "sm_90", 64, 16, 8, 12, Instructions(210, 100), 0.1),
]


def test_the_page_shows_registers_spills_and_instructions() -> None:
    page = ptx_table.to_markdown(USAGES, "13.5")
    assert "| `reduce.fold` | float64 | 34 | 64 +8/12 |" in page.splitlines()
    assert page.splitlines()[-1] == "| `reduce.fold` | float64 | 58 (200) | 100 (210) |"
    assert "2 compilations, 1 with spills" in page


@pytest.mark.parametrize(
    ("change", "far"),
    [
        ({}, []),
        ({"instructions": Instructions(210, 110), "registers": 68}, []),
        ({"instructions": None}, []),
        (
            {"instructions": Instructions(210, 111)},
            ["reduce.fold float64 sm_90: 100 (210) on the page, 111 (210) measured"],
        ),
        (
            {"instructions": Instructions(210, 89)},
            ["reduce.fold float64 sm_90: 100 (210) on the page, 89 (210) measured"],
        ),
        ({"registers": 71}, ["reduce.fold float64 sm_90: 64 +8/12 on the page, 71 +8/12 measured"]),
        (
            {"spill_loads": 0, "spill_stores": 0},
            ["reduce.fold float64 sm_90: 64 +8/12 on the page, 64 measured"],
        ),
        (
            {"lane": "int64"},
            [
                "reduce.fold int64 sm_90: nothing on the page, 64 +8/12 measured",
                "reduce.fold float64 sm_90: 64 +8/12 on the page, nothing measured",
                "reduce.fold int64 sm_90: nothing on the page, 100 (210) measured",
                "reduce.fold float64 sm_90: 100 (210) on the page, nothing measured",
            ],
        ),
    ],
)
def test_the_page_is_compared(change: dict[str, Any], far: list[str]) -> None:
    page = ptx_table.to_markdown(USAGES, "13.5")
    assert ptx_table.differences(page, [replace(USAGES[1], **change)]) == far
