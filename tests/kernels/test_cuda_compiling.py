"""CUDA kernels are compiled by one thread of one process of a machine, as the CPU's are."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.ptx
pytest.importorskip("numba_cuda")

from gpu_windows.kernels import compile as compiling  # noqa: E402
from gpu_windows.kernels.compile import CACHE_VARIABLE  # noqa: E402
from gpu_windows.kernels.cuda import kernel  # noqa: E402

#: Compiles a kernel, in half a second, and writes when that began and ended.
COMPILING = """
import time
from contextlib import nullcontext
from gpu_windows.kernels.cuda import kernel

def compile_kernel(function, signatures):
    began = time.time()
    time.sleep(0.5)
    print(began, time.time())

kernel.working, kernel.compile_kernel = nullcontext, compile_kernel
kernel.Launcher = lambda *_: object()
print("ready", flush=True)
input()
made = kernel.CudaKernel(compile_kernel, [])
made.compile()
made.compile()
"""


def test_one_process_compiles_a_kernel_then_the_others_load_it_at_once(tmp_path: Path) -> None:
    environment = os.environ | {CACHE_VARIABLE: str(tmp_path), "NUMBA_ENABLE_CUDASIM": "0"}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    command = [sys.executable, "-c", COMPILING]
    processes = [subprocess.Popen(command, env=environment, **pipes) for _ in range(3)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    outputs = [process.communicate()[0] for process in processes]
    times = sorted(tuple(map(float, output.split())) for output in outputs)
    assert [len(each) for each in times] == [2, 2, 2]
    (_, compiled), second, third = times
    assert compiled <= second[0]
    assert max(second[0], third[0]) < min(second[1], third[1])


def test_threads_compile_a_kernel_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []

    def compile_slowly(function: Any, _: Any) -> object:
        time.sleep(0.1)
        compiled.append(function.__name__)
        return object()

    monkeypatch.setattr(kernel, "working", nullcontext)
    monkeypatch.setattr(kernel, "compile_kernel", compile_slowly)
    monkeypatch.setattr(kernel, "Launcher", lambda *_: object())
    made = kernel.CudaKernel(compile_slowly, [])
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(made.compile) for _ in range(4)]:
            done.result()
    assert compiled == ["compile_slowly"]


def test_what_failed_for_the_first_process_is_alone_for_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiling, "cache_directory", lambda: tmp_path)
    with pytest.raises(ZeroDivisionError), compiling.first_process("a call"):
        raise ZeroDivisionError
    assert not (tmp_path / "a call.done").exists()
    with compiling.first_process("a call"):
        assert not (tmp_path / "a call.done").exists()
    assert (tmp_path / "a call.done").exists()
