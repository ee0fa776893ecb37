"""``gpu-windows warm``: every kernel is in the cache afterwards, a second time costs nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpu_windows import warm
from gpu_windows.kernels import warm as kernels
from gpu_windows.kernels.compile import CACHE_VARIABLE


def _warm(cache: Path, *arguments: str) -> str:
    environment = os.environ | {CACHE_VARIABLE: str(cache), "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-m", "gpu_windows.cli", "warm", *arguments]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return run.stdout


def _decorated(package: str) -> int:
    sources = (Path(kernels.__file__).parent / package).glob("*.py")
    return sum(text.count("\n@kernel(") for text in map(Path.read_text, sources))


#: Scans and joins, of what is folded and what is picked; moments of floats and of ints.
_TEMPLATES = 2 * 2 + 2


def test_no_kernel_of_the_cpu_is_left_out() -> None:
    assert len(kernels.kernels_of("cpu")) == _decorated("cpu") + _TEMPLATES > 20


def test_kernels_are_told_with_their_times(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    compiled: list[str] = []
    pretended = {"cpu": ["reduce.fold"], "cuda": ["joins.cover"]}
    monkeypatch.setattr(
        kernels,
        "kernels_of",
        lambda package: {
            name: SimpleNamespace(compile=partial(compiled.append, name))
            for name in pretended[package]
        },
    )
    monkeypatch.setattr(warm, "select", lambda _: SimpleNamespace(name="cuda", reason="a test"))
    assert warm.run(as_json=True) == 0
    told = json.loads(capsys.readouterr().out)
    assert [(kernel["backend"], kernel["kernel"]) for kernel in told] == [
        ("cpu", "reduce.fold"),
        ("cuda", "joins.cover"),
    ]
    assert compiled == ["reduce.fold", "joins.cover"]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_kernel_of_the_cpu_is_compiled_and_the_cache_is_used(tmp_path: Path) -> None:
    cold: list[dict[str, Any]] = json.loads(_warm(tmp_path, "--json"))
    decorated = _decorated("cpu") + _TEMPLATES
    assert len(cold) == len({kernel["kernel"] for kernel in cold}) == decorated
    assert {kernel["backend"] for kernel in cold} == {"cpu"}
    files = set(tmp_path.rglob("*.nbi"))
    assert len(files) == decorated
    text = _warm(tmp_path)
    assert set(tmp_path.rglob("*.nbi")) == files
    seconds = float(text.split("kernels in ")[1].split(" s")[0])
    assert seconds < sum(kernel["seconds"] for kernel in cold) / 2
    assert "cuda: nothing to compile for, CUDA_VISIBLE_DEVICES is empty" in text
    assert str(tmp_path) in text
