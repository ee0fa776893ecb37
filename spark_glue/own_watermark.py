"""The watermark of a query whose inputs we follow ourselves, in a shard and its store."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from gpu_windows.monitoring.progress import HELD_BY, HELD_SINCE, WATERMARK
from gpu_windows.operators.state.store import Store
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.spark_glue.times import SparkClock
from gpu_windows.watermarks import InputProgress, Valve, WatermarkStrategy

#: Where a store keeps it: a row for each input, the rest in metadata.
KIND = "watermarks"
_WHERE = (KIND, 0)
_OF_ALL = ("watermark", "former", "at", "moved_at", "idle_since")
_SCHEMA = pa.schema(
    [("watermark", pa.int64()), ("silent_since", pa.int64()), ("is_idle", pa.bool_())]
)


class OwnWatermark:
    """The watermark of a micro-batch in a shard, and of the next one.

    All shards hear the same in the same micro-batches, and look again at the same time, so all have
    the same. It may go on by the clock, though, in a shard in which a window waits for it.

    Parameters
    ----------
    watermarks : WatermarkStrategy
    clock : SparkClock
    store : Store
        Of the shard.
    now_ms : int
        The time of the micro-batch.
    silent : bool
        Whether no shard has any input in it.
    """

    def __init__(
        self,
        watermarks: WatermarkStrategy,
        clock: SparkClock,
        store: Store,
        now_ms: int,
        *,
        silent: bool,
    ) -> None:
        self._watermarks, self._clock, self._store = watermarks, clock, store
        self._now, self._silent = now_ms, silent
        found = store.load_first(*_WHERE)
        inputs = (InputProgress(),) * len(watermarks.inputs)
        self.valve = Valve(inputs) if found is None else from_table(found)

    @property
    def in_force(self) -> int | None:
        """The watermark of the micro-batch, in ticks; None if there is none yet."""
        reached = self.valve.in_force(self._now)
        if reached == LONG_MIN:
            return None
        since = self.valve.idle_since
        if since is None or not (self._silent and self._watermarks.all_close):
            return reached
        return min(reached + self._clock.time(self._now - since), LONG_MAX)

    def finish(self, said: Mapping[int, int]) -> None:
        """Note what was said in the micro-batch, for the next one."""
        self.valve = self.valve.after(self._now, said, self._watermarks.timeouts)
        self._store.save(*_WHERE, to_table(self.valve))

    @property
    def told(self) -> Mapping[str, int | None]:
        """What is told of it after the micro-batch: see `gpu_windows.monitoring.progress.OWN`."""
        valve = self.valve
        return {
            WATERMARK: None if valve.watermark == LONG_MIN else valve.watermark,
            HELD_BY: 0 if valve.holder is None else valve.holder + 1,
            HELD_SINCE: valve.moved_at if valve.idle_since is None else valve.idle_since,
        }

    def next_call(self, event: int | None) -> int | None:
        """Return the time, in milliseconds, at which the shard has to be called; None: at none.

        A timer that was set in the past waits for the next watermark, as in Flink.

        ``event``: the watermark that something in the shard waits for, if anything does.
        """
        now, valve = self._now, self.valve
        look = valve.next_look(now, self._watermarks.timeouts)
        calls = [] if look is None else [look]
        reached = self.in_force
        moves = reached is None or reached < valve.watermark
        if event is not None and moves and event <= valve.watermark:
            calls.append(now + 1)
        elif event is not None and valve.idle_since is not None and self._watermarks.all_close:
            waits = self._clock.first_time(event - valve.watermark)
            calls.append(max(valve.idle_since + waits, now + 1))
        return min(calls, default=None)


def to_table(valve: Valve) -> pa.Table:
    """Return a valve as a store keeps it."""
    rows = [{name: getattr(each, name) for name in _SCHEMA.names} for each in valve.inputs]
    told = {name: getattr(valve, name) for name in _OF_ALL}
    metadata = {name: str(value) for name, value in told.items() if value is not None}
    return pa.Table.from_pylist(rows, schema=_SCHEMA.with_metadata(metadata))


def from_table(table: pa.Table) -> Valve:
    """Return what `to_table` was given."""
    inputs = tuple(InputProgress(**row) for row in table.to_pylist())
    told = {name.decode(): int(value) for name, value in table.schema.metadata.items()}
    return Valve(inputs, **told)
