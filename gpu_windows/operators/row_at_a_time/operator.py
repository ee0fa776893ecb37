"""Flink's WindowOperator, row at a time in plain Python: the reference of the tests.

It is itself checked against recorded runs of Apache Flink (``tests/golden``). It also runs queries
whose user code sees single rows. Its parts: merging windows
(`gpu_windows.operators.row_at_a_time.merging`), contents of windows
(`gpu_windows.operators.row_at_a_time.functions`), timers (`gpu_windows.operators.keyed.timers`),
contexts of user code (`gpu_windows.operators.row_at_a_time.context`), state in memory
(`gpu_windows.operators.row_at_a_time.window_state`) and in a log
(`gpu_windows.operators.keyed.stored`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from gpu_windows.errors import FunctionFailedError, InvalidTriggerError, QueryError
from gpu_windows.functions.counts import Counts
from gpu_windows.functions.failures import call_user, describe_pane
from gpu_windows.functions.side_outputs import GatheredSides
from gpu_windows.operators.base import Emission
from gpu_windows.operators.columns.row_status import status_of_rows
from gpu_windows.operators.keyed.backend import Key
from gpu_windows.operators.keyed.operator import KeyedOperator
from gpu_windows.operators.keyed.timers import Domain, Pane
from gpu_windows.operators.keyed.values import UserKey
from gpu_windows.operators.row_at_a_time.cleanup import Cleanup
from gpu_windows.operators.row_at_a_time.context import FunctionPaneContext, PaneContext
from gpu_windows.operators.row_at_a_time.functions import (
    Contents,
    StoredRow,
    StoredRows,
    Values,
    contents_of,
    processor_of,
)
from gpu_windows.operators.row_at_a_time.merging import MergingWindows
from gpu_windows.operators.row_at_a_time.output import Firing, Output, sides_of
from gpu_windows.operators.row_at_a_time.rows import rows_of
from gpu_windows.operators.row_at_a_time.user_parts import Evict, UserParts, checked_window
from gpu_windows.operators.row_at_a_time.window_state import WindowState
from gpu_windows.planning.kinds.window_plan import WindowPlan
from gpu_windows.rules import ACCEPTED, LONG_MAX, REASONS
from gpu_windows.vocabulary.triggers import TriggerResult
from gpu_windows.vocabulary.windows import MergingWindowAssigner, TimeWindow, Window


class ReferenceOperator(KeyedOperator):
    """Evaluates a plan row at a time, by Flink's algorithm.

    The order of arrival is the order of the rows in the calls of `process`; a runner that
    shuffles rows sorts them by ``Plan.order`` first.

    Parameters
    ----------
    plan : WindowPlan
        Any query; window bounds, lateness, watermarks and processing time in ticks.
    trace : bool
        Whether results carry `gpu_windows.operators.results.TRACE` after the columns of
        ``Plan.result_schema``.

    Notes
    -----
    Source: org.apache.flink.streaming.runtime.operators.windowing.WindowOperator and
    EvictingWindowOperator.
    """

    _plan: WindowPlan
    _keyed: WindowState

    def __init__(self, plan: WindowPlan, *, trace: bool = False) -> None:
        query = plan.query
        super().__init__(plan, WindowState(query))
        # ---- configuration
        self._trace = trace
        self._assigner, self._trigger, self._evictor = query.assigner, query.trigger, query.evictor
        self._parts = UserParts(query)
        self._new_contents = contents_of(query)
        self._processor = processor_of(query)
        self._cleanup = Cleanup(query, self._keyed)
        # ---- state that a restart may lose
        self.user_counts = Counts()
        self._of_function, self._of_evictor = self._asides = [
            sides_of(part) for part in (query.function.user_function, query.evictor)
        ]
        self._no_rows = pa.schema([query.schema.field(c) for c in plan.input_columns]).empty_table()

    def process(self, batch: pa.Table) -> Iterator[Emission]:
        """Process rows in order of arrival; see `Operator.process`. To be drained.

        Rejected rows are emitted with every column of the batch.
        """
        self._no_rows = batch.slice(0, 0)
        if self._stored is not None:
            self._stored.load_keys([batch.column(name) for name in self._plan.query.keys])
        output = self._output(batch)
        for index, row in enumerate(self._usable_rows(batch)):
            output.count("rows")
            reason = row if isinstance(row, str) else self._assign(*row, output)
            if reason == "gap":
                output.count(reason)
            elif reason is not None:
                output.reject(index, reason)
            if output.is_full:
                yield output.take()
        yield from output.rest()

    def _fire_timers(self, domain: Domain, until: int) -> Iterator[Emission]:
        """Fire the timers up to ``until`` in time order. To be drained."""
        state, is_event_time = self._keyed, domain == "event_time"
        timers = state.event_timers if is_event_time else state.processing_timers
        output = self._output(self._no_rows)
        while (timer := timers.pop_due(until)) is not None:
            self._timer(domain, timer, output)
            if output.is_full:
                yield output.take()
        if is_event_time and until == LONG_MAX and self._plan.query.ends_with_time:
            self._end()
        yield from output.rest()

    @property
    def current_processing_time(self) -> int:
        """Processing time, in ticks; part of `AssignerContext`."""
        return self._keyed.processing_time

    def _output(self, batch: pa.Table) -> Output:
        return Output(self._plan, batch, self.user_counts, self._asides, trace=self._trace)

    # ---- rows

    def _usable_rows(self, batch: pa.Table) -> Iterator[str | tuple[Key, StoredRow]]:
        """Yield key and row of every row in order, or the reason if its values are not usable."""
        query = self._plan.query
        status = status_of_rows(query, batch, self._keyed.processing_time)
        if status.any():
            batch = batch.filter(pa.array(status == ACCEPTED))
        rows = rows_of(query, batch)
        for each in status.tolist():
            yield next(rows) if each == ACCEPTED else REASONS[each]

    def _assign(self, key: Key, element: StoredRow, output: Output) -> str | None:
        """Put a row into its windows; return the reason if it is in none."""
        if self._plan.query.needs_time and self._cleanup.is_behind(element.timestamp):
            return "late"
        return self._add_to_windows(key, element, output)

    def _add_to_windows(self, key: Key, element: StoredRow, output: Output) -> str | None:
        """Put a row into its windows; return "late" or "gap" if it is in none."""
        skipped = True
        for assigned in self._parts.windows(element, self):
            window = self._merge(key, assigned)
            pane = Pane(key, window)
            if self._cleanup.is_closed(window):
                self._retire(pane)
                continue
            skipped = False
            contents = self._keyed.state_pane(pane)
            if contents not in self._keyed.contents:
                self._keyed.contents[contents] = self._locate(pane, self._new_contents)
            self._locate(pane, self._keyed.contents[contents].add, element, window)
            on_element, seen = self._trigger.on_element, self._parts.row(element)
            result = self._trigger_result(on_element, pane, seen, element.timestamp, window)
            self._follow(result, pane, output, "element", None)
            self._cleanup.register(pane)
        is_late = self._cleanup.is_late(element.timestamp)
        return None if not skipped else "late" if is_late else "gap"

    # ---- windows that merge

    def _merge(self, key: Key, window: Window) -> Window:
        """Merge a row's own window with others; return the window that contains it."""
        if not isinstance(self._assigner, MergingWindowAssigner):
            return window
        assert isinstance(window, TimeWindow), "only time windows merge"
        windows = self._keyed.merging.setdefault(key, MergingWindows(self._assigner))

        def on_merge(
            whole: TimeWindow,
            parts: list[TimeWindow],
            stays: TimeWindow,
            moved: list[TimeWindow],
        ) -> None:
            self._check_merge(whole)
            pane = Pane(key, whole)
            self._call_trigger(self._trigger.on_merge, pane, whole, self._context(pane, parts))
            for part in parts:
                self._clear_trigger(Pane(key, part))
                self._cleanup.delete(Pane(key, part))
                self._keyed.firings[Pane(key, whole)] += self._keyed.firings.pop(Pane(key, part), 0)
            self._keyed.emitted.merge(pane, [Pane(key, part) for part in parts])
            for other in moved:
                self._absorb(Pane(key, stays), Pane(key, other))

        return windows.add(window, on_merge)  # type: ignore[arg-type]

    def _check_merge(self, whole: TimeWindow) -> None:
        """Reject a merged window that is already closed, as Flink does (user code may make one)."""
        checked_window(whole, f"{type(self._assigner).__name__}.merge_windows")
        now, end = self._keyed.processing_time, whole.max_timestamp
        is_closed = self._cleanup.is_closed(whole) if self._assigner.is_event_time else end <= now
        if is_closed:
            rule = "a window that others are merged into must not be closed"
            raise QueryError(rule, value=whole)

    def _absorb(self, target: Pane, source: Pane) -> None:
        contents = self._keyed.contents.pop(source, None)
        if contents is None:
            return
        if target in self._keyed.contents:
            self._locate(target, self._keyed.contents[target].absorb, contents)
        else:
            self._keyed.contents[target] = contents

    def _exists(self, pane: Pane) -> bool:
        """Whether a window still exists: one that was merged into another does not."""
        if not isinstance(self._assigner, MergingWindowAssigner):
            return True
        windows = self._keyed.merging.get(pane.key)
        return windows is not None and windows.state_window(pane.window) is not None

    def _retire(self, pane: Pane) -> None:
        windows = self._keyed.merging.get(pane.key)
        self._keyed.emitted.drop(pane)
        if windows is not None:
            windows.retire(pane.window)
            if not windows:
                del self._keyed.merging[pane.key]

    # ---- timers

    def _timer(self, fired: str, timer: tuple[int, Pane, bool], output: Output) -> None:
        """Handle a due timer: the trigger's, the cleanup of the window, or both in one."""
        time, pane, silent = timer
        if not self._exists(pane):
            return
        if not silent:
            act = self._trigger.on_event_time
            if fired == "processing_time":
                act = self._trigger.on_processing_time
            result = self._trigger_result(act, pane, time, pane.window)
            self._follow(result, pane, output, fired, time)
        is_own_domain = fired == (
            "event_time" if self._assigner.is_event_time else "processing_time"
        )
        if is_own_domain and time == self._cleanup.time_of(pane.window):
            self._clear(pane)

    def _clear(self, pane: Pane) -> None:
        """Drop a window and all of its state."""
        self._keyed.contents.pop(self._keyed.state_pane(pane), None)
        self._clear_trigger(pane)
        if self._processor is not None:
            self._processor.clear(pane.key, self._function_context(pane, self._of_function))
        self._keyed.firings.pop(pane, None)
        self._retire(pane)

    def _end(self) -> None:
        """Drop the windows that never end."""
        for pane in self._panes():
            if self._cleanup.time_of(pane.window) == LONG_MAX:
                self._clear(pane)

    def _panes(self) -> list[Pane]:
        """Return the windows that have state."""
        if isinstance(self._assigner, MergingWindowAssigner):
            return [Pane(key, w) for key, windows in self._keyed.merging.items() for w in windows]
        state = self._keyed
        every = (state.contents, state.trigger_state, state.window_state, state.firings)
        return list(dict.fromkeys(pane for panes in every for pane in panes))

    def _context(self, pane: Pane, merged: Sequence[Window] = ()) -> PaneContext:
        return PaneContext(self._cleanup, self.user_counts, pane, merged)

    def _function_context(self, pane: Pane, sides: GatheredSides[Key]) -> FunctionPaneContext:
        return FunctionPaneContext(self._cleanup, self.user_counts, pane, sides)

    def _describe(self, pane: Pane) -> str:
        """Return a human-readable description of a window and its key."""
        return describe_pane(UserKey(self._plan.query.display_key_fields)(pane.key), pane.window)

    def _locate(self, pane: Pane, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function; errors of an aggregate or reduce function get the key and the window."""
        try:
            return function(*arguments)
        except FunctionFailedError as error:
            raise error.at_place(self._describe(pane)) from error.__cause__

    # ---- calls of the trigger

    def _call_trigger(self, method: Callable[..., Any], pane: Pane, *arguments: Any) -> Any:
        """Call the trigger; errors name the method and the window."""

        def where() -> str:
            return f"{type(self._trigger).__name__}.{method.__name__}, at {self._describe(pane)}"

        return call_user(method, where, *arguments)

    def _trigger_result(
        self, method: Callable[..., TriggerResult], pane: Pane, *arguments: Any
    ) -> TriggerResult:
        """Call the trigger; return its result."""
        result = self._call_trigger(method, pane, *arguments, self._context(pane))
        if not isinstance(result, TriggerResult):
            rule = f"{type(self._trigger).__name__}.{method.__name__} must return a TriggerResult"
            raise InvalidTriggerError(rule, value=repr(result))
        return result

    def _clear_trigger(self, pane: Pane) -> None:
        self._call_trigger(self._trigger.clear, pane, pane.window, self._context(pane))

    # ---- firing

    def _follow(
        self, result: TriggerResult, pane: Pane, output: Output, fired: str, time: int | None
    ) -> None:
        """Fire or purge a window as the trigger says; one without contents emits nothing."""
        contents = self._keyed.contents.get(self._keyed.state_pane(pane))
        if result.fires and contents is not None and contents.is_changed:
            self._fire(contents, pane, output, self._firing(pane, fired, time))
        if result.purges:
            self._keyed.contents.pop(self._keyed.state_pane(pane), None)

    def _firing(self, pane: Pane, fired: str, time: int | None) -> Firing:
        """Count a firing of a window; return it with its timing: early, on time or late."""
        number = self._keyed.firings[pane]
        self._keyed.firings[pane] += 1
        now = self._keyed.watermark if self._assigner.is_event_time else self._keyed.processing_time
        return Firing.at(fired, time, number, now=now, end=pane.window.max_timestamp)

    def _fire(self, contents: Contents, pane: Pane, output: Output, firing: Firing) -> None:
        if self._evictor is None or not isinstance(contents, StoredRows):
            self._emit(self._locate(pane, contents.values), pane, output, firing)
            return
        contents.rows = self._evict(self._evictor.evict_before, contents.rows, pane)
        self._emit(self._locate(pane, contents.values), pane, output, firing)
        contents.rows = self._evict(self._evictor.evict_after, contents.rows, pane)
        if not contents.rows:
            del self._keyed.contents[self._keyed.state_pane(pane)]

    def _evict(self, evict: Evict, rows: list[StoredRow], pane: Pane) -> list[StoredRow]:
        """Return the rows that an evictor retains."""
        context = self._function_context(pane, self._of_evictor)
        return self._parts.evict(evict, rows, pane.window, context, lambda: self._describe(pane))

    def _emit(self, values: Values, pane: Pane, output: Output, firing: Firing) -> None:
        rows: Iterable[Values] = [values]
        if self._processor is not None:
            context = self._function_context(pane, self._of_function)
            rows = self._processor.rows(pane.key, values, context)
        gone, change, rows = self._keyed.emitted.fire(pane, rows, self._describe)
        output.retract(gone, firing)
        for row in rows:
            output.emit(pane, row, firing, change)
