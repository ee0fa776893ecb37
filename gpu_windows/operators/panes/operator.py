"""The buffer strategy: a compiled state machine for what looks at single rows.

Triggers that count or compare rows, evictors, firings before or after the window's end, late rows:
whatever needs elements or their order, made of built-in parts. Windows that do not merge know
nothing of each other, so each is a *pane* that runs by itself
(`gpu_windows.rules.window_operator`): its new rows in order of arrival, then its due timers.
Sessions of a key run together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from gpu_windows import rules
from gpu_windows.operators import opened
from gpu_windows.operators.base import Emission, StatefulOperator, Stored, Timers
from gpu_windows.operators.counters import Counters
from gpu_windows.operators.device import Kernels
from gpu_windows.operators.panes.merging import SessionMachine
from gpu_windows.operators.panes.outcome import FiredRows, Outcome
from gpu_windows.operators.panes.runner import Ints, Machine
from gpu_windows.operators.panes.single import PaneMachine
from gpu_windows.operators.panes.stored import StoredWindows
from gpu_windows.operators.panes.trigger_program import settings_of, waits
from gpu_windows.operators.rejected import Rejected, given_back
from gpu_windows.operators.state.log import StateLog
from gpu_windows.planning.plan import WindowPlan
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.rules.window_operator.layout import (
    ELEMENT,
    EVENT_TIMER,
    PROCESSING_TIMER,
    Settings,
)

#: The numbers that are saved, and whose they are.
_OWNER, _NUMBERS = "windows of rows", ("watermark", "clock", "next row")
#: Rows that may wait where their windows keep partials of them.
WAITING_ROWS = 1 << 21


class MachineOperator(StatefulOperator[Stored]):
    """Windows of built-in parts, by a machine.

    Parameters
    ----------
    plan : WindowPlan
    kernels : Kernels
    machine : Machine
    in_order : bool
        Whether results come in order of firing.
    """

    def __init__(
        self, plan: WindowPlan, kernels: Kernels, machine: Machine, *, in_order: bool
    ) -> None:
        # configuration
        self._plan = plan
        self._kernels = kernels
        self._in_order = in_order or plan.query.changes
        self._settings = settings_of(plan.query)
        # state
        self._machine = machine
        self._watermark = LONG_MIN
        self._processing_time = 0

    def close(self) -> None:
        """Close what is open of the query."""
        opened.close(self._plan.query.token)

    def _taken(self, batch: pa.Table, rejected: Rejected) -> Emission:
        """Return what is said of a batch when it was taken."""
        counters = rejected.counts() + self._kernels.counted()
        return Emission(self._machine.schema.empty_table(), given_back(batch, rejected), counters)

    def _run(self, advance: int, until: int, late: list[Ints] | None = None) -> Iterator[Emission]:
        """Run the machine; ``late`` is told the numbers of rows that came too late."""
        outcomes = self._machine.run(self._settings_for(advance, until))
        if self._in_order:
            outcomes = _in_order(list(outcomes))
        for outcome in outcomes:
            if late is not None:
                late.append(outcome.late)
            results = outcome.results.rows
            sides = {tag: side.rows for tag, side in outcome.sides.items()}
            if len(results) or outcome.counts or any(map(len, sides.values())):
                user = tuple(sorted(outcome.counts.items()))
                counters = Counters(fired=len(results), user=user) + self._kernels.counted()
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
        """Take up the times, and how many rows came."""
        numbers = log.numbers(_OWNER, _NUMBERS)
        if numbers is not None:
            self._watermark, self._processing_time, self._machine.seen = numbers

    def _save_numbers(self, log: StateLog) -> None:
        numbers = (self._watermark, self._processing_time, self._machine.seen)
        log.set_numbers(_OWNER, dict(zip(_NUMBERS, numbers, strict=True)))


class BufferOperator(MachineOperator[StoredWindows]):
    """Windows whose contents are kept as rows come, for those may make them fire.

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
        kind = SessionMachine if plan.query.merges else PaneMachine
        super().__init__(plan, kernels, kind(plan, kernels, trace=trace), in_order=in_order)
        self._waits = waits(plan.query.trigger)

    def process(self, batch: pa.Table) -> Iterator[Emission]:
        """Take rows, in order of arrival; fire the windows that they make fire, in that order."""
        rejected = self._machine.take(batch, self._watermark, self._processing_time)
        if self._stored is not None:
            self._stored.load_keys(self._machine.waiting_codes)
        late: list[Ints] = []
        if not self._may_wait or self._has_waited:
            yield from self._run(ELEMENT, LONG_MIN, late)
        yield self._taken(batch, _with_late(rejected, late))

    @property
    def _may_wait(self) -> bool:
        """Whether no row can make a window fire, or be late, before the watermark moves."""
        query = self._plan.query
        in_time = query.assigner.is_event_time and not (query.merges or query.allowed_lateness)
        if query.is_global:
            in_time = self._watermark < LONG_MAX
        return self._waits and (in_time or self._watermark == LONG_MIN)

    @property
    def _has_waited(self) -> bool:
        """Whether so many rows wait that it is time to take of them what will be kept."""
        return not self._machine.keeps_rows and self._machine.waiting >= WAITING_ROWS

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

    def _restored(self, log: StateLog) -> StoredWindows:
        """Know the windows that the log has: they are read when their keys or timers come."""
        self._load_numbers(log)
        return self._windows_in(log)

    def _windows_in(self, log: StateLog) -> StoredWindows:
        """Return what a log has of windows."""
        return StoredWindows(self._machine, log, lacking=self._plan.lacking)

    def _save(self, stored: StoredWindows) -> None:
        """Write the windows of the keys that were looked for or are new."""
        self._take_waiting()
        stored.save(self._settings)
        self._save_numbers(stored.log)

    def _take_waiting(self) -> None:
        """Give windows the rows that wait, which they do only where they fire nothing."""
        for emission in self._run(ELEMENT, LONG_MIN):
            raise AssertionError(f"rows that waited fired {len(emission.results)} windows")

    def _next_timers(self, stored: StoredWindows) -> Timers:
        """Return the times of the earliest timers."""
        return stored.next_timers()

    def state_size(self) -> dict[str, int]:
        """Return how many entries of each kind of state are held, in memory and in the store."""
        size = Counter(self._machine.size())
        size.update({} if self._stored is None else self._stored.size())
        return dict(size)


def _in_order(outcomes: list[Outcome]) -> Iterator[Outcome]:
    """Put the results of all panes, and what went aside, into the order in which they fired.

    Those of one row from the latest window to the earliest, those of one time by window.
    """
    if not outcomes:
        return
    late = np.concatenate([outcome.late for outcome in outcomes])
    counts: Counter[str] = Counter()
    for outcome in outcomes:
        counts.update(outcome.counts)
    sides = [outcome.sides for outcome in outcomes if outcome.sides]
    tags = sides[0] if sides else {}
    together = {tag: _sorted([each[tag] for each in sides]) for tag in tags}
    yield Outcome(_sorted([outcome.results for outcome in outcomes]), late, together, counts)


def _sorted(parts: list[FiredRows]) -> FiredRows:
    """Return the rows of all parts in the order in which their windows fired."""
    rows = pa.concat_tables([part.rows for part in parts])
    when = np.concatenate([part.when for part in parts])
    window = np.concatenate([part.window for part in parts])
    order = np.lexsort((window, when))
    if (order[1:] < order[:-1]).any():
        rows, when, window = rows.take(pa.array(order)), when[order], window[order]
    return FiredRows(rows, when, window)


def _with_late(rejected: Rejected, late: list[Ints]) -> Rejected:
    """Return what was rejected of a batch, with the late ones of the rows that were not."""
    rows = np.concatenate([np.empty(0, np.int64), *late])
    if len(rows) == 0:
        return rejected
    status = np.full(rejected.seen, rules.ACCEPTED, np.int8)
    status[rejected.places] = rejected.status
    status[np.flatnonzero(status == rules.ACCEPTED)[rows]] = rules.LATE
    return Rejected.of(status)
