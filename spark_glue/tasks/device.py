"""Which device and how many threads a Spark task may use; decided on the executor."""

from __future__ import annotations

from pyspark import TaskContext

from gpu_windows.operators.device import begin_task
from gpu_windows.planning.plan import Plan
from gpu_windows.spark_glue.session.gpus import TASK_AMOUNT
from gpu_windows.spark_glue.session.settings import Conf

#: Share of a GPU for tasks that must use one without a grant: how many share it is unknown.
_UNGRANTED_SHARE = 0.25


def gpu_share(conf: Conf) -> float:
    """Return a task's share of a GPU, in (0, 1], by the settings of a session."""
    try:
        amount = float(conf.get(TASK_AMOUNT, None) or 1)
    except ValueError:  # Spark refuses it, too
        return 1.0
    return 1 / int(1 / amount) if 0 < amount < 1 else 1.0


def use_task_device(share: float) -> None:
    """Set the device and the share of it that this process's current task may use.

    Parameters
    ----------
    share : float
        Of a GPU, in (0, 1]: `gpu_share` on the driver.
    """
    context = TaskContext.get()
    if context is None:
        return
    resource = context.resources().get("gpu")
    addresses = () if resource is None else tuple(resource.addresses)
    begin_task(addresses, share if addresses else _UNGRANTED_SHARE, context.partitionId())


def task_number() -> int:
    """Return the partition number of this task; 0 outside of Spark."""
    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


def task_threads(plan: Plan) -> int:
    """Return how many threads CPU kernels may use in this task: its number of cores."""
    context = TaskContext.get()
    return plan.query.options.threads or (1 if context is None else context.cpus())
