"""The buffer strategy: a compiled state machine for windows that depend on single rows.

Such windows have triggers that count or compare rows, evictors, firings before or after the
window's end, or late rows; all parts are built-in. Windows that do not merge are independent of
each other, so each is a *pane* that runs by itself (`gpu_windows.rules.window_operator`): its new
rows in order of arrival, then its due timers.
Sessions of a key run together.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from gpu_windows import rules
from gpu_windows.operators import open_functions
from gpu_windows.operators.base import Emission, StatefulOperator, Stored, Timers
from gpu_windows.operators.counters import Counters, Rejected, rejected_rows
from gpu_windows.operators.device import Kernels
from gpu_windows.operators.panes.merging import SessionMachine
from gpu_windows.operators.panes.outcome import FiredRows, Outcome
from gpu_windows.operators.panes.runner import Ints, Machine
from gpu_windows.operators.panes.single import PaneMachine
from gpu_windows.operators.panes.stored import StoredWindows
from gpu_windows.operators.panes.trigger_program import fires_only_at_end, settings_of
from gpu_windows.operators.state.log import StateLog
from gpu_windows.planning.kinds.window_plan import WindowPlan
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.rules.window_operator.layout import (
    ELEMENT,
    EVENT_TIMER,
    PROCESSING_TIMER,
    Settings,
)

#: The owner of the saved numbers, and their names.
_OWNER, _NUMBERS = "windows of rows", ("watermark", "clock", "next row")
#: How many rows are buffered before windows that keep partials take them.
MAX_BUFFERED_ROWS = 1 << 21


class MachineOperator(StatefulOperator[Stored]):
    """Operator of windows made of built-in parts, run by a state machine.

    Parameters
    ----------
    plan : WindowPlan
    kernels : Kernels
    trace : bool
        Whether results carry `gpu_windows.operators.results.TRACE`.
    in_order : bool
        Whether results come in order of firing.
    """

    def __init__(
        self, plan: WindowPlan, kernels: Kernels, *, trace: bool = False, in_order: bool = True
    ) -> None:
        # configuration
        self._plan, self._kernels, self._trace = plan, kernels, trace
        self._in_order = in_order or plan.query.changes
        self._settings = settings_of(plan.query)
        # state
        self._machine = self._make_machine()
        self._watermark = LONG_MIN
        self._processing_time = 0

    @abstractmethod
    def _make_machine(self) -> Machine:
        """Return an empty machine."""

    def close(self) -> None:
        """Close the user functions of the query."""
        open_functions.close(self._plan.query.token)

    def _acknowledge(self, batch: pa.Table, rejected: Rejected) -> Emission:
        """Return the emission that acknowledges a batch: rejected rows and counters."""
        counters = rejected.counts() + self._kernels.take_counters()
        return Emission(
            self._machine.schema.empty_table(), rejected_rows(batch, rejected), counters
        )

    def _run(self, advance: int, until: int, late: list[Ints] | None = None) -> Iterator[Emission]:
        """Run the machine; the numbers of late rows are appended to ``late``."""
        outcomes = self._machine.run(self._settings_for(advance, until))
        if self._in_order:
            outcomes = _sort_by_firing(list(outcomes))
        for outcome in outcomes:
            if late is not None:
                late.append(outcome.late)
            results = outcome.results.rows
            sides = {tag: side.rows for tag, side in outcome.sides.items()}
            if len(results) or outcome.counts or any(map(len, sides.values())):
                user = tuple(sorted(outcome.counts.items()))
                counters = Counters(fired=len(results), user=user) + self._kernels.take_counters()
                yield Emission(results, pa.table({}), counters, sides)

    def _settings_for(self, advance: int, until: int) -> Settings:
        """Return the settings of a call: rows see the times before it, timers those after it."""
        return self._settings._replace(
            watermark=self._watermark,
            processing_time=self._processing_time,
            advance=advance,
            until=until,
            is_end=int(
                advance == EVENT_TIMER and until == LONG_MAX and self._plan.query.ends_with_time
            ),
        )

    # ---- in a log

    def _load_numbers(self, log: StateLog) -> None:
        """Load the watermark, the processing time and the number of rows so far."""
        numbers = log.numbers(_OWNER, _NUMBERS)
        if numbers is not None:
            self._watermark, self._processing_time, self._machine.seen = numbers

    def _save_numbers(self, log: StateLog) -> None:
        numbers = (self._watermark, self._processing_time, self._machine.seen)
        log.set_numbers(_OWNER, dict(zip(_NUMBERS, numbers, strict=True)))


class BufferOperator(MachineOperator[StoredWindows]):
    """Windows whose contents are updated as rows come, because rows may make them fire.

    Parameters: see `MachineOperator`.
    """

    def _make_machine(self) -> Machine:
        kind = SessionMachine if self._plan.query.merges else PaneMachine
        return kind(self._plan, self._kernels, trace=self._trace)

    def process(self, batch: pa.Table) -> Iterator[Emission]:
        """Process rows in order of arrival; fire the windows that they make fire, in that order."""
        rejected = self._machine.take(batch, self._watermark, self._processing_time)
        if self._stored is not None:
            self._stored.load_keys(self._machine.buffered_codes)
        late: list[Ints] = []
        if not self._can_buffer or self._is_buffer_full:
            yield from self._run(ELEMENT, LONG_MIN, late)
        yield self._acknowledge(batch, _add_late(rejected, late))

    @property
    def _can_buffer(self) -> bool:
        """Whether no row can make a window fire, or be late, before the watermark moves."""
        query = self._plan.query
        in_time = query.assigner.is_event_time and not (query.merges or query.allowed_lateness)
        if query.is_global:
            in_time = self._watermark < LONG_MAX
        return fires_only_at_end(query.trigger) and (in_time or self._watermark == LONG_MIN)

    @property
    def _is_buffer_full(self) -> bool:
        """Whether `MAX_BUFFERED_ROWS` rows or more are buffered, of windows that keep partials."""
        return not self._machine.keeps_rows and self._machine.buffered_count >= MAX_BUFFERED_ROWS

    def advance_watermark(self, watermark: int) -> Iterator[Emission]:
        """Fire the timers up to ``watermark``, in time order."""
        if watermark <= self._watermark:
            return
        if self._stored is not None:
            self._stored.load_due(watermark)
        yield from self._run(EVENT_TIMER, watermark)
        self._watermark = watermark
        if watermark == LONG_MAX and self._plan.query.ends_with_time:
            self._machine.clear()
            if self._stored is not None:
                self._stored.clear()

    def advance_processing_time(self, time: int) -> Iterator[Emission]:
        """Set processing time and fire its timers up to ``time``, in time order."""
        if self._stored is not None:
            self._stored.load_due(time, in_processing_time=True)
        yield from self._run(PROCESSING_TIMER, time)
        self._processing_time = time

    def _restore_state(self, log: StateLog) -> StoredWindows:
        """Open the stored windows; they are read when their keys or timers come."""
        self._load_numbers(log)
        return self._windows_in(log)

    def _windows_in(self, log: StateLog) -> StoredWindows:
        """Return the stored windows of a log."""
        return StoredWindows(self._machine, log, lacking=self._plan.lacking)

    def _save(self, stored: StoredWindows) -> None:
        """Write the windows of the keys that were loaded or are new."""
        self._flush_buffer()
        stored.save(self._settings)
        self._save_numbers(stored.log)

    def _flush_buffer(self) -> None:
        """Add the buffered rows to their windows; rows are buffered only if they fire nothing."""
        for emission in self._run(ELEMENT, LONG_MIN):
            raise AssertionError(f"buffered rows fired {len(emission.results)} windows")

    def _next_timers(self, stored: StoredWindows) -> Timers:
        """Return the times of the earliest timers."""
        return stored.table.next_timers()

    def state_size(self) -> dict[str, int]:
        """Return the number of entries of each kind of state, in memory and in the store."""
        size = Counter(self._machine.size())
        size.update({} if self._stored is None else self._stored.table.not_loaded)
        return dict(size)


def _sort_by_firing(outcomes: list[Outcome]) -> Iterator[Outcome]:
    """Sort the results and side outputs of all panes by their order of firing.

    Windows that one row fires come from the latest to the earliest, those of one time by window.
    """
    if not outcomes:
        return
    late = np.concatenate([outcome.late for outcome in outcomes])
    counts: Counter[str] = Counter()
    for outcome in outcomes:
        counts.update(outcome.counts)
    sides = [outcome.sides for outcome in outcomes if outcome.sides]
    tags = sides[0] if sides else {}
    side_rows = {tag: _merge_sorted([each[tag] for each in sides]) for tag in tags}
    yield Outcome(_merge_sorted([outcome.results for outcome in outcomes]), late, side_rows, counts)


def _merge_sorted(parts: list[FiredRows]) -> FiredRows:
    """Return the rows of all parts in the order in which their windows fired."""
    rows = pa.concat_tables([part.rows for part in parts])
    when = np.concatenate([part.when for part in parts])
    window = np.concatenate([part.window for part in parts])
    order = np.lexsort((window, when))
    if (order[1:] < order[:-1]).any():
        rows, when, window = rows.take(pa.array(order)), when[order], window[order]
    return FiredRows(rows, when, window)


def _add_late(rejected: Rejected, late: list[Ints]) -> Rejected:
    """Return the rejected rows of a batch, and in addition those that sessions found late."""
    rows = np.concatenate([np.empty(0, np.int64), *late])
    if len(rows) == 0:
        return rejected
    status = np.full(rejected.seen, rules.ACCEPTED, np.int8)
    status[rejected.positions] = rejected.status
    status[np.flatnonzero(status == rules.ACCEPTED)[rows]] = rules.LATE
    return Rejected.of(status)
