"""Settings by which Spark assigns GPUs to tasks, and the discovery script of a node's GPUs."""

from __future__ import annotations

import json
import subprocess
import sys

from gpu_windows.errors import InvalidOptionError

#: How many GPUs an executor has, and how many, or how much of one, a task.
EXECUTOR_AMOUNT = "spark.executor.resource.gpu.amount"
TASK_AMOUNT = "spark.task.resource.gpu.amount"

#: Maximum number of tasks that share a GPU: each holds a CUDA context of some hundreds of MiB.
MAX_TASKS = 64

_COMMAND = ("nvidia-smi", "--query-gpu=index", "--format=csv,noheader")


def gpu_settings(tasks: int) -> dict[str, str]:
    """Return the settings with which every executor has a GPU.

    Parameters
    ----------
    tasks : int
        How many tasks of an executor share it at a time; 0 (or False): tasks get no GPU.

    Raises
    ------
    InvalidOptionError
        If ``tasks`` is not in 0..64.
    """
    if tasks not in range(MAX_TASKS + 1):
        rule = f"gpu is how many tasks share a GPU: True or 1..{MAX_TASKS}, False for none"
        raise InvalidOptionError(rule, value=tasks)
    if tasks == 0:
        return {}
    return {EXECUTOR_AMOUNT: "1", TASK_AMOUNT: "1" if tasks == 1 else str(1 / tasks)}


def discover() -> None:
    """Print the GPUs of this node as Spark's discovery scripts do: the numbers of nvidia-smi.

    It is the command ``gpu-windows-gpus``. Where nvidia-smi fails it says so and exits with 1, so
    that Spark does not start without a GPU.
    """
    try:
        found = subprocess.run(_COMMAND, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"gpu-windows-gpus: {error}; {getattr(error, 'stderr', None) or 'no output'}")
    sys.stdout.write(json.dumps({"name": "gpu", "addresses": found.split()}) + "\n")
