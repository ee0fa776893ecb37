"""GPUs that Spark hands out: pretended ones, for a task need not use what it was granted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import gpu_windows as gw
from gpu_windows.errors import InvalidOptionError
from gpu_windows.spark_glue.session.gpus import (
    EXECUTOR_AMOUNT,
    MAX_TASKS,
    TASK_AMOUNT,
    gpu_settings,
)
from gpu_windows.spark_glue.tasks.device import gpu_share
from tests.lanes import quick

ROOT = Path(__file__).parents[3]


class Builder:
    def config(self, *, map: dict[str, str]) -> dict[str, str]:  # noqa: A002 - as Spark has it
        return map


def configured(gpu: Any) -> dict[str, str]:
    settings: dict[str, str] = gw.configure(Builder(), gpu=gpu)  # type: ignore[call-overload]
    return settings


@pytest.mark.parametrize(("gpu", "amount"), [(True, "1"), (1, "1"), (4, "0.25")])
def test_configure_hands_out_a_gpu(gpu: Any, amount: str) -> None:
    settings = configured(gpu)
    assert settings[EXECUTOR_AMOUNT] == "1"
    assert settings[TASK_AMOUNT] == amount


def test_configure_hands_out_none_where_it_is_not_asked() -> None:
    assert not [name for name in configured(False) if "gpu" in name]


@pytest.mark.parametrize("gpu", [-1, MAX_TASKS + 1, 0.5, "yes", None])
def test_what_is_no_number_of_tasks_is_refused(gpu: Any) -> None:
    with pytest.raises(InvalidOptionError, match=r"how many tasks share a GPU: True or 1\.\.64"):
        configured(gpu)


def test_a_tasks_share_is_what_its_number_says() -> None:
    for tasks in range(1, MAX_TASKS + 1):
        assert gpu_share(gpu_settings(tasks)) == 1 / tasks


def script(folder: Path, nvidia_smi: str) -> tuple[Path, dict[str, str]]:
    """Write a discovery script and what it asks; return it, and the environment that it needs."""
    smi, made = folder / "nvidia-smi", folder / "gpu-windows-gpus"
    smi.write_text(f"#!/bin/sh\n{nvidia_smi}\n")
    made.write_text(
        f"#!{sys.executable}\nfrom gpu_windows.spark_glue.session import gpus\ngpus.discover()"
    )
    for file in (smi, made):
        file.chmod(0o755)
    path = os.pathsep.join([str(folder), os.environ["PATH"]])
    return made, os.environ | {"PATH": path, "PYTHONPATH": str(ROOT)}


def test_the_discovery_script_says_what_spark_reads(tmp_path: Path) -> None:
    made, environment = script(tmp_path, 'test "$1" = --query-gpu=index && printf "0\\n1\\n"')
    run = subprocess.run([made], env=environment, capture_output=True, text=True, check=True)
    assert json.loads(run.stdout) == {"name": "gpu", "addresses": ["0", "1"]}


def test_a_node_without_a_driver_has_no_gpus_to_hand_out(tmp_path: Path) -> None:
    made, environment = script(tmp_path, "echo the driver is gone >&2; exit 9")
    run = subprocess.run([made], env=environment, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (1, "")
    assert "the driver is gone" in run.stderr


@pytest.mark.parametrize("tasks", quick([1, 2], nightly=[1, 2]))
def test_a_cluster_hands_gpus_out(tasks: int, tmp_path: Path) -> None:
    made, environment = script(tmp_path, 'printf "0\\n1\\n"')
    command = [sys.executable, "-m", "tests.spark_glue.granted", str(tasks), str(made)]
    run = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout.splitlines()[-1])
    assert {task["address"] for task in found["tasks"]} == {"0", "1"}
    for address in "01":
        assert most_at_once([t for t in found["tasks"] if t["address"] == address]) <= tasks
    assert found["results"] == [300, 925, 1550, 2175]
    assert "device='cuda' needs a usable CUDA device" in found["error"]


def most_at_once(tasks: list[dict[str, float]]) -> int:
    """Return how many tasks ran at a time."""
    return max(sum(t["begin"] <= other["begin"] < t["end"] for t in tasks) for other in tasks)
