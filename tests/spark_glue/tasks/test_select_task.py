"""What the tasks of a selection return to the driver."""

from __future__ import annotations

from gpu_windows.spark_glue.tasks.select_task import inline_bytes
from gpu_windows.spark_glue.tasks.shard_task import MIN_INLINE_BYTES


def test_few_tasks_return_their_results_and_many_not_more_than_a_driver_takes() -> None:
    sizes = [inline_bytes(task) for task in range(1_000_000)]
    assert {*sizes[:1_024]} == {MIN_INLINE_BYTES}
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[10_000] < 200
    assert 16 << 20 < sum(sizes) < 32 << 20
