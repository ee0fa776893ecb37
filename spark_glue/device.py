"""Which device and how many threads a Spark task may use; decided on the executor."""

from __future__ import annotations

import importlib
import os
from importlib.util import find_spec

from pyspark import TaskContext

from gpu_windows.plan import Plan

#: Set by a task for the CUDA back end where Spark names the device only in its resources.
DEVICE_VARIABLE = "CUDA_VISIBLE_DEVICES"


def use_task_device() -> None:
    """Make the task's device visible, before any CUDA call, if none is chosen for the process.

    ``CUDA_VISIBLE_DEVICES`` set: the cluster manager has chosen (empty: no device). Unset: the
    first address among the task's ``gpu`` resources, else, in local mode, the partition's number
    modulo the number of devices, which the CUDA back end resolves.
    """
    if DEVICE_VARIABLE in os.environ:
        return
    context = TaskContext.get()
    if context is None:
        return
    resource = context.resources().get("gpu")
    if resource is not None and resource.addresses:
        os.environ[DEVICE_VARIABLE] = resource.addresses[0]
        return
    if find_spec("cupy") is not None:
        module = importlib.import_module("gpu_windows.kernels.cuda.primitives")
        module.prefer_device(context.partitionId())


def task_threads(plan: Plan) -> int:
    """Return how many threads CPU kernels may use in this task: what it has cores for."""
    context = TaskContext.get()
    return plan.query.options.threads or (1 if context is None else context.cpus())
