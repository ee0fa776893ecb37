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

#: Compiles a kernel: the first process in half a second, the others when both have begun.
COMPILING = """
import os, sys, time
from contextlib import nullcontext
from pathlib import Path
from gpu_windows.kernels.cuda import kernel

folder = Path(sys.argv[1])

def compile_kernel(function, signatures):
    began = time.time()
    if is_first():
        time.sleep(0.5)
    else:
        wait_for_another()
    print(began, time.time())

def is_first():
    try:
        (folder / "first").touch(exist_ok=False)
        return True
    except FileExistsError:
        return False

def wait_for_another():
    (folder / f"begun-{os.getpid()}").touch()
    deadline = time.monotonic() + 60
    while len(list(folder.glob("begun-*"))) < 2:
        assert time.monotonic() < deadline, "the other process does not begin"
        time.sleep(0.01)

kernel.working, kernel.compile_kernel = nullcontext, compile_kernel
kernel.cache_target = lambda: "sm_90"
kernel.Launcher = lambda *_: object()
print("ready", flush=True)
input()
made = kernel.CudaKernel(compile_kernel, [])
made.compile()
made.compile()
"""


def test_one_process_compiles_a_kernel_then_the_others_load_it_at_once(tmp_path: Path) -> None:
    environment = os.environ | {CACHE_VARIABLE: str(tmp_path)}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    command = [sys.executable, "-c", COMPILING, str(tmp_path)]
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
    (_, compiled), second, _ = times
    assert compiled <= second[0]  # and each of the others has waited until both had begun


def test_threads_compile_a_kernel_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []

    def compile_slowly(function: Any, _: Any) -> object:
        time.sleep(0.1)
        compiled.append(function.__name__)
        return object()

    monkeypatch.setattr(kernel, "working", nullcontext)
    monkeypatch.setattr(kernel, "cache_target", lambda: "sm_90")
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
    done = tmp_path / "a call.sm_90.done"
    with pytest.raises(ZeroDivisionError), compiling.run_first_alone("a call", "sm_90"):
        raise ZeroDivisionError
    assert not done.exists()
    with compiling.run_first_alone("a call", "sm_90"):
        assert not done.exists()
    assert done.exists()


def test_where_a_folder_cannot_be_read_each_is_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path) -> bool:
        raise PermissionError

    monkeypatch.setattr(compiling, "cache_directory", lambda: tmp_path)
    monkeypatch.setattr(Path, "exists", refuse)
    with compiling.run_first_alone("a call", "sm_90"):
        pass
