"""What the checkpoint of a streaming query holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gpu_windows.checkpoints.summary import CheckpointState, Holding, ShardState, Timers, totals

if TYPE_CHECKING:
    from gpu_windows.annotations import SparkSession
    from gpu_windows.spark_glue.state_source import Blobs

__all__ = ["CheckpointState", "Holding", "ShardState", "Timers", "read_state"]


def read_state(
    spark: SparkSession,
    checkpoint: str,
    *,
    batch: int | None = None,
    operator: int | None = None,
) -> CheckpointState:
    """Tell what the checkpoint of a streaming query holds, while the query runs or when it is over.

    Nothing in the checkpoint is changed. All of the state is read, by Spark's workers.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        Any one that reaches the checkpoint.
    checkpoint : str
        Its path, as `gpu_windows.write_stream` was given it.
    batch : int, optional
        After which micro-batch; the last one that is committed if not given. Spark keeps the last
        100 (``spark.sql.streaming.minBatchesToRetain``).
    operator : int, optional
        Number of the stateful operator, needed only where several of a query are of gpu_windows:
        each stage of `stream_results` has one, the last 0.

    Returns
    -------
    CheckpointState

    Raises
    ------
    CheckpointError
        If there is no such folder, or it is no checkpoint, or one of another query; if it does not
        have the micro-batch; if Spark cannot read it.
    StateCorruptedError, StateVersionError
        If a blob of the state cannot be read, with its shard, kind and bucket; or the manifest.
    """
    # PySpark need not be there to import gpu_windows.
    from gpu_windows.spark_glue.checkpoint import Checkpoint
    from gpu_windows.spark_glue.state_source import read_blobs, read_timers

    found = Checkpoint(spark, checkpoint, operator)
    known = {} if found.manifest is None else found.manifest.described
    number = found.batch(batch)
    if found.operator is None or number is None:
        return CheckpointState(found.path, known)
    blobs, timers = read_blobs(found, number), read_timers(found, number)
    watermark, next_watermark = found.watermarks(number)
    return CheckpointState(
        checkpoint=found.path,
        query=_described(known, blobs),
        batch=number,
        watermark=watermark,
        next_watermark=next_watermark,
        timers_of=found.operator.timers_of,
        **totals(blobs, timers),
    )


def _described(known: Mapping[str, str], blobs: Blobs) -> Mapping[str, str]:
    """Return the query, or the stage of it whose state this is."""
    own = {} if blobs.manifest is None else blobs.manifest.described
    is_one_of_several = any(": " in name for name in known)
    return dict(own) if is_one_of_several and own else {**own, **known}
