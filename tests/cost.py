"""What work costs, for tests that it does not grow faster than what there is to do."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable


def cpu_seconds(work: Callable[[], object], times: int) -> float:
    """Return the least CPU time of some runs: what others do on the machine only adds to it."""

    def once() -> float:
        began = time.process_time()
        work()
        return time.process_time() - began

    gc.collect()
    gc.disable()
    try:
        return min(once() for _ in range(times))
    finally:
        gc.enable()
