"""What runs in Spark's state store workers: an operator for each shard, its state in a map."""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import LongType, StringType, StructType

from gpu_windows.errors import StateCorruptedError
from gpu_windows.operators.state.store import Store
from gpu_windows.planning.plan import Plan
from gpu_windows.spark_glue.device import task_threads, use_task_device
from gpu_windows.spark_glue.garbage import spare_modules
from gpu_windows.spark_glue.micro_batch import Shard
from gpu_windows.spark_glue.packing import BLOB, BLOB_BYTES, Room
from gpu_windows.spark_glue.passed import rows_of
from gpu_windows.spark_glue.tagged import AFTER, RESULT, measured, pack_emissions
from gpu_windows.spark_glue.times import SparkClock

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import (
        ExpiredTimerInfo,
        MapState,
        StatefulProcessorHandle,
        TimerValues,
    )

#: Name of the state, a map.
STATE = "state"
#: Of its entries, as types: Spark's workers ask the JVM what a text means, four times a shard.
_KEY = StructType().add("kind", StringType()).add("bucket", LongType())
_VALUE = StructType().add(BLOB, StringType())


class WindowProcessor(StatefulProcessor):
    """Runs a plan's operator for a shard of the keys.

    In every micro-batch an operator first advances to Spark's times, then takes the rows: as in
    Flink, had the watermark come between the micro-batches. Spark calls in the other order: first
    the handler of rows, then that of timers.

    Parameters
    ----------
    plan : Plan
    clock : SparkClock, optional
    most, large : int
        See `gpu_windows.spark_glue.packing.Room`: of results and late rows.
    gpu_share : float
        How much of a GPU is a task's.
    before : tuple of str
        The earlier stages of the query, in order.
    is_stage : bool
        Whether another stage goes on from its results.
    """

    def __init__(
        self,
        plan: Plan,
        clock: SparkClock | None = None,
        *,
        most: int = BLOB_BYTES,
        large: int = 0,
        gpu_share: float = 1.0,
        before: tuple[str, ...] = (),
        is_stage: bool = False,
    ) -> None:
        self._shard = Shard(plan, clock, is_stage=is_stage)
        self._before, self._is_stage = before, is_stage
        self._most, self._large = most, large
        self._gpu_share = gpu_share

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Take the shard's state."""
        spare_modules()
        use_task_device(self._gpu_share)
        self._handle = handle
        self._state = handle.getMapState(STATE, _KEY, _VALUE)

    def handleInputRows(  # noqa: N802 - as Spark calls it
        self,
        key: Any,
        rows: Any,
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        """Advance, then take the rows of a shard."""
        del key
        blobs = (blob for frame in rows for blob in frame.iloc[:, -1])  # 4.3 does not name them
        yield from self._run(timerValues, blobs)

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        """Advance."""
        del key, expiredTimerInfo
        yield from self._run(timerValues, iter(()), silent=True)

    def close(self) -> None:
        """Do nothing: the state is Spark's."""

    def _run(
        self, now: TimerValues, blobs: Iterator[bytes], *, silent: bool = False
    ) -> Iterator[pd.DataFrame]:
        at = now.getCurrentProcessingTimeInMs(), now.getCurrentWatermarkInMs()
        threads = task_threads(self._shard.plan)
        batch = self._shard.begin(_SparkStore(self._state), *at, threads, silent=silent)
        room = Room(self._most, self._large)
        after = AFTER if self._is_stage else RESULT
        phases = batch.phases(batch.unmarked(blobs))
        emissions = ((after if is_after else RESULT, each) for is_after, each in phases)
        counters = yield from pack_emissions(emissions, room)
        yield from rows_of(batch.messages, self._before)
        finished = batch.finish()
        yield measured(counters, finished.measures, finished.held)
        self._set_timer(finished.next_call)

    def _set_timer(self, wanted: int | None) -> None:
        """Have one timer of Spark's, or none."""
        found = set(self._handle.listTimers())
        for other in found - {wanted}:
            self._handle.deleteTimer(other)
        if wanted is not None and wanted not in found:
            self._handle.registerTimer(wanted)


def to_text(blob: bytes) -> str:
    """Return a blob as Spark keeps it: in base64.

    Spark hands bytes to Python character by character, so text costs it a third of what they cost.
    """
    return b2a_base64(blob, newline=False).decode("ascii")


def from_text(text: str) -> bytes:
    """Return what `to_text` was given.

    Raises
    ------
    StateCorruptedError
        If it is none of its texts.
    """
    try:
        return a2b_base64(text, strict_mode=True)
    except ValueError as error:
        raise StateCorruptedError("state must be what gpu_windows wrote", value=error) from error


class _SparkStore(Store):
    """A store in a map of Spark's state store."""

    def __init__(self, state: MapState) -> None:
        self._state = state

    def read(self, kind: str, bucket: int) -> bytes | None:
        """Return a blob, or None."""
        value = self._state.getValue((kind, bucket))
        return None if value is None else from_text(value[0])

    def write(self, kind: str, bucket: int, blob: bytes, *, held: int | None = None) -> None:
        """Keep a blob."""
        del held
        self._state.updateValue((kind, bucket), (to_text(blob),))

    def remove(self, kind: str, bucket: int, *, held: int | None = None) -> None:
        """Forget a blob."""
        del held
        self._state.removeKey((kind, bucket))
