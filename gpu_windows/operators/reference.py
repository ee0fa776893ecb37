"""Flink's WindowOperator, row at a time in plain Python: the truth that the tests ask.

It also runs the queries that have no columnar strategy. The parts: triggers at work
(`gpu_windows.operators.reference_triggers`), contents of windows
(`gpu_windows.operators.reference_functions`), timers
(`gpu_windows.operators.reference_timers`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat

import pyarrow as pa

from gpu_windows.functions import Reduce, Row
from gpu_windows.operators.base import Emission, Operator
from gpu_windows.operators.reference_functions import Contents, contents_of
from gpu_windows.operators.reference_output import Output
from gpu_windows.operators.reference_timers import Slot, TimerQueue
from gpu_windows.operators.reference_triggers import TriggerResult, trigger_logic
from gpu_windows.operators.reference_values import key_part, stored_values
from gpu_windows.plan import Plan
from gpu_windows.rules import (
    LONG_MAX,
    LONG_MIN,
    cleanup_time,
    earliest_tick,
    is_late,
    latest_tick,
)
from gpu_windows.windows import SlicedAssigner


class ReferenceOperator(Operator):
    """Evaluates a plan row at a time, by Flink's algorithm.

    The order of arrival is the order of the rows in the calls of `process`; a runner that
    shuffles rows sorts them by ``Plan.order`` first.

    Parameters
    ----------
    plan : Plan
        A query with any assigner that has ``assign(ts)``; window bounds, lateness and
        watermarks in ticks.
    trace : bool
        Whether results carry `gpu_windows.operators.base.TRACE` after the columns of
        ``Plan.result_schema``.

    Raises
    ------
    UnsupportedQueryError
        If the trigger has no logic here.

    Notes
    -----
    Source: org.apache.flink.streaming.runtime.operators.windowing.WindowOperator.
    """

    def __init__(self, plan: Plan, *, trace: bool = False) -> None:
        query = plan.query
        # ---- configuration
        self._plan = plan
        self._trace = trace
        self._lateness = query.allowed_lateness
        self._trigger = trigger_logic(query.trigger)
        self._new_contents = contents_of(query.function)
        self._first_tick, self._last_tick = _usable_ticks(plan)
        # ---- state
        self._watermark = LONG_MIN
        self._contents: dict[Slot, Contents] = {}
        self._trigger_state: dict[Slot, dict[str, int]] = {}
        self._timers = TimerQueue()
        # ---- state that a restart may lose
        self._no_rows = pa.schema([query.schema.field(c) for c in plan.input_columns]).empty_table()

    def process(self, batch: pa.Table) -> Iterator[Emission]:
        """Take rows, in order of arrival; see `Operator.process`. To be drained.

        Late and unusable rows come back whole, with every column of the batch.
        """
        self._no_rows = batch.slice(0, 0)
        output = Output(self._plan, batch, trace=self._trace)
        for index, (slot_key, ts, row) in enumerate(self._rows(batch)):
            output.count("rows")
            reason = self._unusable(ts)
            if ts is not None and reason is None:
                reason = self._element(slot_key, ts, row, output)
            if reason == "gap":
                output.count(reason)
            elif reason is not None:
                output.reject(index, reason)
            if output.is_full:
                yield output.take()
        if not output.is_empty:
            yield output.take()

    def advance_watermark(self, watermark: int) -> Iterator[Emission]:
        """Fire the timers up to ``watermark`` in time order; see the base class. To be drained."""
        if watermark <= self._watermark:
            return
        self._watermark = watermark
        output = Output(self._plan, self._no_rows, trace=self._trace)
        while (timer := self._timers.pop_due(watermark)) is not None:
            self._event_time(*timer, output)
            if output.is_full:
                yield output.take()
        if watermark == LONG_MAX:
            self._end()
        if not output.is_empty:
            yield output.take()

    def state_size(self) -> dict[str, int]:
        """Return how much is held: windows with contents, timers, windows with trigger state."""
        return {
            "windows": len(self._contents),
            "timers": len(self._timers),
            "trigger_entries": len(self._trigger_state),
        }

    # ---- rows

    def _rows(self, batch: pa.Table) -> Iterator[tuple[tuple[object, ...], int | None, Row]]:
        query = self._plan.query
        keys = [map(key_part, stored_values(batch[name])) for name in query.keys]
        names = query.used_columns
        if isinstance(query.function, Reduce):  # user code: Python's own values
            columns = [batch[name].to_pylist() for name in names]
        else:
            columns = [stored_values(batch[name]) for name in names]
        values = zip(*columns, strict=True) if names else repeat((), batch.num_rows)
        times = batch[query.time].to_pylist()
        for key, ts, row in zip(zip(*keys, strict=True), times, values, strict=True):
            yield key, ts, dict(zip(names, row, strict=True))

    def _unusable(self, ts: int | None) -> str | None:
        """Return why a row has no place in time, if it has none."""
        if ts is None:
            return "null_timestamp"
        in_range = self._first_tick <= ts <= self._last_tick
        return None if in_range else "out_of_range_timestamp"

    def _element(self, key: tuple[object, ...], ts: int, row: Row, output: Output) -> str | None:
        """Put a row into its windows; return "late" or "gap" if it is in none."""
        skipped = True
        for window in self._plan.query.assigner.assign(ts):
            if is_late(window.max_timestamp, self._lateness, self._watermark):
                continue
            skipped = False
            slot = Slot(key, window)
            if slot not in self._contents:
                self._contents[slot] = self._new_contents()
            self._contents[slot].add(row)
            result = self._trigger.on_element(row, ts, window, _Context(self, slot))
            self._follow(result, slot, output, "element", None)
            self._register_cleanup(slot)
        if not skipped:
            return None
        return "late" if is_late(ts, self._lateness, self._watermark) else "gap"

    # ---- timers

    def _event_time(self, time: int, slot: Slot, output: Output) -> None:
        """Act on a due timer: the trigger's, the cleanup of the window, or both in one."""
        context = _Context(self, slot)
        result = self._trigger.on_event_time(time, slot.window, context)
        self._follow(result, slot, output, "event_time", time)
        if time == cleanup_time(slot.window.max_timestamp, self._lateness):
            self._contents.pop(slot, None)
            self._trigger.clear(slot.window, context)

    def _register_cleanup(self, slot: Slot) -> None:
        """Set the timer that drops the window; a window that lasts for ever needs none."""
        time = cleanup_time(slot.window.max_timestamp, self._lateness)
        if time < LONG_MAX:
            self._timers.register(time, slot)

    def _end(self) -> None:
        """Drop the windows whose cleanup time is the end of time."""
        self._contents.clear()
        self._trigger_state.clear()
        self._timers.clear()

    # ---- firing

    def _follow(
        self, result: TriggerResult, slot: Slot, output: Output, fired: str, time: int | None
    ) -> None:
        """Do what the trigger said; a window without contents emits nothing."""
        contents = self._contents.get(slot)
        if result.fires and contents is not None:
            output.emit(slot, contents.results(), fired, time)
        if result.purges:
            self._contents.pop(slot, None)


class _Context:
    """A `gpu_windows.operators.reference_triggers.TriggerContext` of one slot."""

    def __init__(self, operator: ReferenceOperator, slot: Slot) -> None:
        self._operator = operator
        self._slot = slot

    @property
    def current_watermark(self) -> int:
        return self._operator._watermark

    def register_event_time_timer(self, time: int) -> None:
        self._operator._timers.register(time, self._slot)

    def delete_event_time_timer(self, time: int) -> None:
        self._operator._timers.delete(time, self._slot)

    def get(self, name: str, default: int) -> int:
        return self._operator._trigger_state.get(self._slot, {}).get(name, default)

    def put(self, name: str, value: int) -> None:
        self._operator._trigger_state.setdefault(self._slot, {})[name] = value

    def remove(self, name: str) -> None:
        entries = self._operator._trigger_state.get(self._slot, {})
        entries.pop(name, None)
        if not entries:
            self._operator._trigger_state.pop(self._slot, None)


def _usable_ticks(plan: Plan) -> tuple[int, int]:
    """Return the first and last timestamp whose windows fit into int64."""
    assigner = plan.query.assigner
    if isinstance(assigner, SlicedAssigner):
        grid = assigner.grid()
        return earliest_tick(grid), latest_tick(grid)
    return LONG_MIN, LONG_MAX
