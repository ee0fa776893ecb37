"""The buffer strategy: a compiled state machine for what looks at single rows.

Triggers that count or compare rows, evictors, firings before or after the window's end, late rows:
whatever needs elements or their order, made of built-in parts. Windows that do not merge know
nothing of each other, so each is a *slot* that runs by itself (`gpu_windows.machine`): its new
rows in order of arrival, then its due timers. Sessions of a key run together.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from gpu_windows import rules
from gpu_windows.errors import StateCorruptedError
from gpu_windows.machine.state import CLOCK_TIMER, ELEMENT, EVENT_TIMER, Settings
from gpu_windows.operators.base import Counters, Emission, Operator
from gpu_windows.operators.device import Kernels
from gpu_windows.operators.firing import given_back
from gpu_windows.operators.machine import Ints
from gpu_windows.operators.programs import settings_of, waits
from gpu_windows.operators.session_machine import SessionMachine
from gpu_windows.operators.slice_table import Rejected
from gpu_windows.operators.slot_machine import SlotMachine
from gpu_windows.operators.slot_results import Outcome
from gpu_windows.operators.store import Store
from gpu_windows.plan import Plan
from gpu_windows.rules import LONG_MAX, LONG_MIN

#: Where a store keeps windows and rows, and what the metadata of the rows tells.
_WINDOWS, _ROWS = ("windows", 0), ("rows", 0)
_KNOWN = (b"watermark", b"clock")
#: Rows that may wait where their windows keep partials of them.
WAITING_ROWS = 1 << 21


class BufferOperator(Operator):
    """Windows of built-in parts, by a machine.

    Parameters
    ----------
    plan : Plan
    kernels : Kernels
    trace : bool
        Whether results carry `gpu_windows.operators.base.TRACE`.
    in_order : bool
        Whether results come in order of firing.
    """

    def __init__(
        self, plan: Plan, kernels: Kernels, *, trace: bool = False, in_order: bool = True
    ) -> None:
        # configuration
        self._plan = plan
        self._kernels = kernels
        self._in_order = in_order
        self._settings = settings_of(plan.query)
        self._waits = waits(plan.query.trigger)
        # state
        kind = SessionMachine if plan.query.merges else SlotMachine
        self._machine = kind(plan, kernels, trace=trace)
        self._watermark = LONG_MIN
        self._clock = 0
        self._store: Store | None = None

    def process(self, batch: pa.Table) -> Iterator[Emission]:
        """Take rows, in order of arrival; fire the windows that they make fire, in that order."""
        rejected = self._machine.take(batch, self._watermark, self._clock)
        late: list[Ints] = []
        if not self._may_wait or self._has_waited:
            yield from self._run(ELEMENT, LONG_MIN, late)
        rejected = _with_late(rejected, late)
        nothing = self._machine.schema.empty_table()
        counters = rejected.counts() + self._kernels.counted()
        yield Emission(nothing, given_back(batch, rejected), counters)

    @property
    def _may_wait(self) -> bool:
        """Whether no row can make a window fire, or be late, before the watermark moves."""
        query = self._plan.query
        ends_with_watermark = query.assigner.is_event_time and not query.merges
        in_time = ends_with_watermark and query.allowed_lateness == 0
        return self._waits and (in_time or self._watermark == LONG_MIN)

    @property
    def _has_waited(self) -> bool:
        """Whether so many rows wait that it is time to take of them what will be kept."""
        return not self._settings.keeps_rows and self._machine.waiting >= WAITING_ROWS

    def advance_watermark(self, watermark: int) -> Iterator[Emission]:
        """Fire the timers up to ``watermark``, in time order."""
        if watermark <= self._watermark:
            return
        yield from self._run(EVENT_TIMER, watermark)
        self._watermark = watermark
        if watermark == LONG_MAX:
            self._machine.clear()

    def advance_processing_time(self, time: int) -> Iterator[Emission]:
        """Set the clock and fire its timers up to ``time``, in time order."""
        yield from self._run(CLOCK_TIMER, time)
        self._clock = time

    def restore(self, store: Store) -> None:
        """Go on from what was saved: all windows of the keys, and the rows that they keep."""
        self._store = store
        windows, rows = store.load(*_WINDOWS), store.load(*_ROWS)
        if windows is None:
            return
        if rows is None:
            raise StateCorruptedError("windows must come with their rows", value=_ROWS[0])
        self._watermark, self._clock = (int(rows.schema.metadata[name]) for name in _KNOWN)
        self._machine.restore(windows, rows)

    def save(self) -> None:
        """Write all windows of the keys, and the rows that they keep."""
        assert self._store is not None, "restore comes first"
        for emission in self._run(ELEMENT, LONG_MIN):  # rows wait only where they fire nothing
            raise AssertionError(f"rows that waited fired {len(emission.results)} windows")
        windows, rows = self._machine.tables()
        times = (self._watermark, self._clock)
        metadata = dict(zip(_KNOWN, (str(time).encode() for time in times), strict=True))
        self._store.save(*_WINDOWS, windows)
        self._store.save(*_ROWS, rows.replace_schema_metadata(metadata))

    def next_timers(self) -> tuple[int | None, int | None]:
        """Return the times of the earliest timers."""
        return self._machine.next_timers(self._settings)

    def state_size(self) -> dict[str, int]:
        """Return how many entries of each kind of state are held."""
        return self._machine.size()

    def _run(self, advance: int, until: int, late: list[Ints] | None = None) -> Iterator[Emission]:
        """Run the machine; ``late`` is told the numbers of rows that came too late."""
        outcomes = self._machine.run(self._settings_for(advance, until))
        if self._in_order:
            outcomes = _in_order(list(outcomes))
        for outcome in outcomes:
            if late is not None:
                late.append(outcome.late)
            if len(outcome.results):
                counters = Counters(fired=len(outcome.results)) + self._kernels.counted()
                yield Emission(outcome.results, pa.table({}), counters)

    def _settings_for(self, advance: int, until: int) -> Settings:
        """Return the settings of a call: rows see the times before it, timers those after it."""
        return self._settings._replace(
            watermark=self._watermark,
            clock=self._clock,
            advance=advance,
            until=until,
            is_end=int(advance == EVENT_TIMER and until == LONG_MAX),
        )


def _in_order(outcomes: list[Outcome]) -> Iterator[Outcome]:
    """Put the results of all slots into the order in which they fired.

    Those of one row from the latest window to the earliest, those of one time by window.
    """
    if not outcomes:
        return
    results = pa.concat_tables([outcome.results for outcome in outcomes])
    when = np.concatenate([outcome.when for outcome in outcomes])
    window = np.concatenate([outcome.window for outcome in outcomes])
    order = np.lexsort((window, when))
    if (order[1:] < order[:-1]).any():
        results = results.take(pa.array(order))
    yield Outcome(results, when, window, np.concatenate([outcome.late for outcome in outcomes]))


def _with_late(rejected: Rejected, late: list[Ints]) -> Rejected:
    """Return what was rejected of a batch, with the late ones of the rows that were not."""
    rows = np.concatenate([np.empty(0, np.int64), *late])
    if len(rows) == 0:
        return rejected
    status = np.full(rejected.seen, rules.ACCEPTED, np.int8)
    status[rejected.places] = rejected.status
    status[np.flatnonzero(status == rules.ACCEPTED)[rows]] = rules.LATE
    return Rejected.of(status)
