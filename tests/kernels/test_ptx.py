"""Every CUDA kernel compiles to machine code for four architectures, without a GPU or a driver."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

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
#: The kernel of the quick lane.
SMALL = "numbering.count"


@pytest.mark.thorough
@pytest.mark.timeout(900)  # minutes where others work on the same cores
@pytest.mark.parametrize("capability", [(7, 5), (8, 0), (9, 0), (10, 0)])
def test_every_kernel_compiles_and_stays_in_registers(capability: tuple[int, int]) -> None:
    if find_spec("numba_cuda") is None:
        pytest.skip("needs numba-cuda, of the extra `ptx`")
    from gpu_windows.kernels.cuda.kernel import all_kernels
    from tests.kernels import ptx_report

    ptxas = ptx_report.find_ptxas()
    if ptxas is None:
        pytest.skip(f"needs ptxas: {ptx_report.PTXAS_PACKAGE}, of the extra `ptx`")
    usages = list(ptx_report.measure(ptxas, [capability]))
    if folder := os.environ.get(REPORT_VARIABLE):
        Path(folder, f"ptxas-{usages[0].arch}.json").write_text(ptx_report.to_json(usages))

    assert len(usages) == sum(len(kernel.signatures) for kernel in all_kernels().values())
    spilled = {u.kernel: u.spill_stores + u.spill_loads for u in usages}
    assert max(spilled.values()) <= MOST_SPILLED_BYTES, spilled
    registers = {u.kernel: u.registers for u in usages}
    assert max(registers.values()) <= MOST_REGISTERS, registers
    seconds = {u.kernel: u.seconds for u in usages}
    assert max(seconds.values()) <= MOST_SECONDS, seconds


def test_a_small_kernel_compiles() -> None:
    """The way from a kernel to machine code; `make check` takes every kernel along it."""
    if find_spec("numba_cuda") is None:
        pytest.skip("needs numba-cuda, of the extra `ptx`")
    from gpu_windows.kernels.cuda.kernel import all_kernels
    from tests.kernels import ptx_report

    ptxas = ptx_report.find_ptxas()
    if ptxas is None:
        pytest.skip(f"needs ptxas: {ptx_report.PTXAS_PACKAGE}, of the extra `ptx`")
    kernels = {SMALL: all_kernels()[SMALL]}
    usages = list(ptx_report.measure(ptxas, [(9, 0)], kernels))
    assert len(usages) == len(kernels[SMALL].signatures)
    assert all(0 < usage.registers <= MOST_REGISTERS for usage in usages), usages


def test_every_module_with_a_kernel_is_on_the_list() -> None:
    if find_spec("numba_cuda") is None:
        pytest.skip("needs numba-cuda, of the extra `ptx`")
    from gpu_windows.kernels import cuda
    from gpu_windows.kernels.cuda.kernel import all_kernels

    sources = Path(str(cuda.__file__)).parent.glob("*.py")
    decorated = sum(text.count("\n@kernel(") for text in map(Path.read_text, sources))
    assert len(all_kernels()) == decorated > 0


def test_the_table_shows_registers_and_spills() -> None:
    if find_spec("numba_cuda") is None:
        pytest.skip("needs numba-cuda, of the extra `ptx`")
    from tests.kernels.ptx_report import Usage, to_markdown

    usages = [
        Usage("reduce.fold", "float64", "sm_80", 34, 0, 0, 0, 0.1),
        Usage("reduce.fold", "float64", "sm_90", 64, 16, 8, 12, 0.1),
    ]
    page = to_markdown(usages, "13.5")
    assert page.splitlines()[-1] == "| `reduce.fold` | float64 | 34 | 64 +8/12 |"
    assert "2 compilations, 1 with spills" in page
