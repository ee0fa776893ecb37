"""Spares Python workers to look through all that they have imported after each task.

A worker that Spark uses again collects garbage between two tasks. It looks at every object of every
module then, which takes longer than most tasks of a stream: 70 ms with pandas, PyArrow and Numba.
"""

from __future__ import annotations

import gc
from itertools import count

#: Numbers the tasks of this process.
_tasks = count(1)
#: Later ones import little.
_LAST = 64


def spare_modules() -> None:
    """Have collections pass over what is there when a task of a worker begins.

    Done for the first task and for the second, fourth and so on, for modules are imported, and
    kernels loaded, when they are needed. Not for ever: what is passed over is freed if nothing
    refers to it any more, but not if it refers to itself.
    """
    from pyspark import TaskContext  # shards run without Spark, too

    if TaskContext.get() is None:
        return  # this process is not Spark's
    number = next(_tasks)
    if number <= _LAST and number & (number - 1) == 0:
        gc.freeze()
