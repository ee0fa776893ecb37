"""Keeps imported modules out of the garbage collection that Python workers run between tasks.

Spark reuses workers and collects garbage between two tasks. That visits every object of every
module, which takes longer than most tasks of a stream: 70 ms with pandas, PyArrow and Numba.
"""

from __future__ import annotations

import gc
from itertools import count

#: Numbers the tasks of this process.
_tasks = count(1)
#: Later ones import little.
_LAST = 64


def freeze_modules() -> None:
    """Exclude all current objects from later garbage collections (`gc.freeze`).

    Done at the first task of a worker, the second, fourth and so on up to `_LAST`, because modules
    are imported, and kernels loaded, when they are needed. Frozen objects are still freed with
    their last reference, but cycles of them are not.
    """
    from pyspark import TaskContext  # shards run without Spark, too

    if TaskContext.get() is None:
        return  # this process is not Spark's
    number = next(_tasks)
    if number <= _LAST and number & (number - 1) == 0:
        gc.freeze()
