"""Modules are passed over when a worker collects garbage, now and then and only in workers."""

from __future__ import annotations

import gc
from itertools import count

import pytest

from gpu_windows.spark_glue.tasks import worker_step as garbage

pyspark = pytest.importorskip("pyspark")


def test_modules_are_passed_over_in_workers_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks, frozen = count(1), []
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(True))
    monkeypatch.setattr(garbage, "_tasks", tasks)
    garbage.freeze_modules()
    assert (next(tasks), frozen) == (1, [])
    monkeypatch.setattr(garbage, "_tasks", count(1))
    monkeypatch.setattr(pyspark.TaskContext, "get", lambda: object())
    times = []
    for _ in range(300):
        garbage.freeze_modules()
        times.append(len(frozen))
    assert [times.index(n) + 1 for n in range(1, 8)] == [1, 2, 4, 8, 16, 32, 64]
    assert times[-1] == 7
