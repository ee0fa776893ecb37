"""Which device a Spark task may use; decided on the executor, before any CUDA call."""

from __future__ import annotations

import importlib
import os
from importlib.util import find_spec

from pyspark import TaskContext

#: Set by a task for the CUDA back end where Spark names the device only in its resources.
DEVICE_VARIABLE = "CUDA_VISIBLE_DEVICES"


def use_task_device() -> None:
    """Make the task's device visible, if the process has none chosen for it yet.

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
