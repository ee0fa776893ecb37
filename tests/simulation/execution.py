"""Runs a case as Spark would: micro-batches, shards, timers, and state that is what was committed.

All that a shard does is `gpu_windows.spark_glue.micro_batch`, as in Spark's workers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa
import pytest

from gpu_windows.errors import GpuWindowsError
from gpu_windows.operators.build import restored_operator
from gpu_windows.operators.joins import pairs as together
from gpu_windows.operators.joins import rows as join_rows
from gpu_windows.operators.slices import blobs as slice_blobs
from gpu_windows.operators.slices import stored as slice_store
from gpu_windows.operators.slices.timely import TimelyStage
from gpu_windows.operators.state import row_runs, segments, tiers, timer_lists
from gpu_windows.operators.state import runs as key_runs
from gpu_windows.operators.state.store import MemoryStore
from gpu_windows.planning.plan import WindowPlan
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.spark_glue.micro_batch import Shard
from gpu_windows.spark_glue.packing import dealt
from gpu_windows.spark_glue.times import END_MS, Times
from tests.simulation.case import Case, Crash, MicroBatch, Segment
from tests.simulation.outcome import Given, Outcome

#: Tables in which the rows of a shard come: as many blobs.
_BLOB_ROWS = 5
#: Rows that a task before the shuffle has.
_TASK_ROWS = 12
#: What is held together at most, where that is little.
_TIGHT = (
    (key_runs, "_BLOCK_BYTES", 1),
    (tiers, "TOGETHER", 2),
    (tiers, "SMALL", 2),
    (timer_lists, "_BLOCK", 2),
    (segments, "_TOGETHER", 2),
    (row_runs, "_BLOCK_BYTES", 1),
    (row_runs, "_DUE_BLOCKS", 1),
    (join_rows, "_MOST_ROWS", 1),
    (slice_blobs, "MOST_ALIKE", 2),
    (slice_store, "_BUCKETS_A_WINDOW", 1),
    (slice_store, "_SMALL_BYTES", 1),
    (together, "PAIRS", 3),
)


class CrashedError(BaseException):
    """A worker has died: nobody can tell it as an error of a function."""


@dataclass
class Fuse:
    """Dies after so many operations of stores and operators; never if None."""

    left: int | None = None

    def burn(self) -> None:
        """Note an operation."""
        if self.left is not None:
            if self.left == 0:
                raise CrashedError
            self.left -= 1


class FusedStore(MemoryStore):
    """A store in memory, in which a fuse burns."""

    def __init__(self, blobs: dict[tuple[str, int], bytes], fuse: Fuse) -> None:
        super().__init__(blobs)
        self._fuse = fuse

    def read(self, kind: str, bucket: int) -> bytes | None:
        """Return a blob, or None."""
        self._fuse.burn()
        return super().read(kind, bucket)

    def write(self, kind: str, bucket: int, blob: bytes, *, held: int | None = None) -> None:
        """Keep a blob."""
        super().write(kind, bucket, blob, held=held)
        self._fuse.burn()

    def remove(self, kind: str, bucket: int, *, held: int | None = None) -> None:
        """Forget a blob."""
        super().remove(kind, bucket, held=held)
        self._fuse.burn()


MakeStore = Callable[[dict[tuple[str, int], bytes], Fuse], MemoryStore]


@dataclass
class State:
    """What is committed: the blobs of every shard, and its timer."""

    blobs: dict[int, dict[tuple[str, int], bytes]] = field(default_factory=dict)
    timers: dict[int, int] = field(default_factory=dict)

    def copy(self) -> State:
        """Return what a micro-batch may change."""
        return State({shard: dict(held) for shard, held in self.blobs.items()}, dict(self.timers))


class BrokenInvariantError(AssertionError):
    """What a shard says of itself is not so."""


class Execution:
    """A case as it is executed.

    Parameters
    ----------
    case : Case
    make_store : callable
        Makes the store of a shard in a micro-batch.
    """

    def __init__(self, case: Case, make_store: MakeStore = FusedStore) -> None:
        self._case = case
        self._plan = case.executed
        self._make_store = make_store
        self._state = State()
        self.calls = self.crashes = 0

    def run(self) -> Outcome:
        """Run all micro-batches, then the end of time."""
        with pytest.MonkeyPatch.context() as patch:
            for module, name, most in _TIGHT if self._case.is_tight else ():
                patch.setattr(module, name, most)
            return self._run()

    def _run(self) -> Outcome:
        found: list[Given] = []
        any_order = not self._plan.query.order_dependent(bounded=False)
        try:
            for segment in self._case.segments():
                found.append(Given())
                for batch in segment.micro_batches(any_order=any_order):
                    found[-1] += self._committed(segment, batch)
        except GpuWindowsError as error:
            return Outcome(found, {}, error)
        return Outcome(found, self._left())

    def _committed(self, segment: Segment, batch: MicroBatch) -> Given:
        """Run a micro-batch until it does not die."""
        rows = self._by_shard(segment, batch)
        for crash in batch.crashes:
            self._die(segment, rows, crash)
        state = self._state.copy()
        given = self._attempt(segment, rows, state, Fuse())
        self._state = state
        return given

    def _die(self, segment: Segment, rows: dict[int, list[pa.Table]], crash: Crash) -> None:
        """Run a micro-batch that dies, at the latest before it is committed."""
        self.crashes += 1
        try:
            self._attempt(segment, rows, self._state.copy(), Fuse(crash.after))
        except CrashedError:
            return

    def _by_shard(self, segment: Segment, batch: MicroBatch) -> dict[int, list[pa.Table]]:
        """Return the rows of every shard, in the order in which a shuffle brings them."""
        if not batch.rows:
            return {}
        found: dict[int, list[pa.Table]] = {}
        for table in self._sent(self._case.table(batch.rows, self._plan, segment.now), segment):
            sent, shards = dealt(self._plan, table)
            for shard in sorted(set(shards.tolist())):
                own = sent.filter(pa.array(shards == shard))
                blobs = (own.slice(at, _BLOB_ROWS) for at in range(0, len(own), _BLOB_ROWS))
                found.setdefault(shard, []).extend(blobs)
        return found

    def _sent(self, rows: pa.Table, segment: Segment) -> Iterator[pa.Table]:
        """Yield what tasks make of rows before a shuffle."""
        plan, ahead = self._plan, self._case.ahead
        if ahead is None or not plan.makes_partials:
            yield rows
            return
        assert isinstance(plan, WindowPlan)
        watermark = Times(plan.query, self._case.clock).watermark(segment.now, segment.watermark)
        latest = LONG_MIN if watermark is None else min(watermark + ahead, LONG_MAX)
        for at in range(0, len(rows), _TASK_ROWS):
            stage = TimelyStage(plan, latest, worth=math.inf)
            yield from stage.run(rows.slice(at, _TASK_ROWS).to_batches())

    def _attempt(
        self, segment: Segment, rows: dict[int, list[pa.Table]], state: State, fuse: Fuse
    ) -> Given:
        """Call the shards that have rows, and those whose timer is due."""
        shard = Shard(self._plan, self._case.clock)
        at = segment.now, segment.watermark
        given = Given()
        for number in sorted({*rows, *self._due(shard, segment)}):
            fuse.burn()
            store = self._make_store(state.blobs.setdefault(number, {}), fuse)
            batch = shard.begin(store, *at)
            for emission in batch.emissions(rows.get(number, [])):
                given.add([emission])
                fuse.burn()
            finished = batch.finish()
            state.timers.pop(number, None)
            if finished.next_call is not None:
                state.timers[number] = finished.next_call
            held = sum(len(blob) for (kind, _), blob in store.blobs.items() if kind != "measures")
            if finished.measures.state_bytes != held:
                raise BrokenInvariantError(f"{finished.measures} of {held} bytes")
            self.calls += 1
        return given

    def _due(self, shard: Shard, segment: Segment) -> set[int]:
        """Return the shards that Spark calls without rows; at the end of time all."""
        if segment.watermark == END_MS:
            return set(self._state.blobs)
        now = segment.now if shard.times.in_processing_time else segment.watermark
        return {number for number, time in self._state.timers.items() if time <= now}

    def _left(self) -> dict[str, int]:
        """Return what stores hold, and shards that wait for a time."""
        left: dict[str, int] = {"timers": len(self._state.timers)}
        for blobs in self._state.blobs.values():
            operator = restored_operator(self._plan, MemoryStore(dict(blobs)))
            for name, count in operator.state_size().items():
                left[name] = left.get(name, 0) + count
        return {name: count for name, count in left.items() if count}
