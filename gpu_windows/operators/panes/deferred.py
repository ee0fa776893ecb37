"""The buffer strategy for windows that fire once, at their end: rows are appended by their slices.

What a call writes are the rows that came in it; what it reads are the rows of the windows that end.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from gpu_windows.operators.base import Emission, Timers
from gpu_windows.operators.columns.lanes import to_lane
from gpu_windows.operators.device import Kernels
from gpu_windows.operators.panes.assign import PaneFinder
from gpu_windows.operators.panes.deferring import DeferringMachine
from gpu_windows.operators.panes.operator import MachineOperator
from gpu_windows.operators.panes.stored import ROWS, WINDOWS, is_in_buckets
from gpu_windows.operators.panes.tables import rows_of_windows
from gpu_windows.operators.state.head import HEAD, numbers_of, save_head
from gpu_windows.operators.state.segments import Segments
from gpu_windows.operators.state.store import Contents, Store
from gpu_windows.planning.plan import ARRIVAL, SLICE, WindowPlan
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.rules.window_operator.layout import EVENT_TIMER

#: What a store calls the rows.
KIND = "waiting"
#: The numbers that are saved.
_KNOWN = ("watermark", "clock", "seen")
#: What the metadata of a segment calls the key columns.
_NAMES = "keys"


@dataclass
class StoredRows:
    """What is known of a store.

    Parameters
    ----------
    store : Store
    segments : Segments
        The rows that wait.
    """

    store: Store
    segments: Segments


class DeferringOperator(MachineOperator[StoredRows]):
    """Windows of event time that fire once, at their end, and need their rows then.

    Parameters
    ----------
    plan : WindowPlan
    kernels : Kernels
    trace : bool
        Whether results carry `gpu_windows.operators.results.TRACE`.
    in_order : bool
        Whether results come in order of firing.
    """

    _machine: DeferringMachine

    def __init__(
        self, plan: WindowPlan, kernels: Kernels, *, trace: bool = False, in_order: bool = True
    ) -> None:
        machine = DeferringMachine(plan, kernels, trace=trace)
        super().__init__(plan, kernels, machine, in_order=in_order)
        self._finder = PaneFinder(plan)

    def process(self, batch: pa.Table) -> Iterator[Emission]:
        """Take rows; results wait for the watermark."""
        rejected = self._machine.take(batch, self._watermark, self._processing_time)
        yield self._taken(batch, rejected)

    def advance_watermark(self, watermark: int) -> Iterator[Emission]:
        """Fire the windows that end up to ``watermark``, in order of their ends."""
        if watermark <= self._watermark:
            return
        last = self._finder.last_due(watermark)
        if self._stored is not None:
            self._load(self._stored.segments, last)
        yield from self._run(EVENT_TIMER, watermark)
        self._watermark = watermark
        if self._stored is not None:
            _, greatest = self._stored.segments.slices
            self._stored.segments.remove(~self._finder.are_in(greatest, last + 1, LONG_MAX))

    def _load(self, segments: Segments, last: int) -> None:
        """Have the rows in memory of the windows that are due."""
        first, (least, greatest) = self._finder.first_open(self._watermark), segments.slices
        due = self._finder.are_in(greatest, first, LONG_MAX) & self._finder.are_in(
            least, LONG_MIN, last
        )
        for rows in segments.load(due):
            is_due = self._finder.are_in(to_lane(rows.column(SLICE)).values, first, last)
            if is_due.any():
                self._machine.lend(rows.filter(pa.array(is_due)))

    def advance_processing_time(self, time: int) -> Iterator[Emission]:
        """Set processing time, which nothing waits for."""
        self._processing_time = time
        yield from ()

    # ---- in a store

    def _restored(self, store: Store) -> StoredRows:
        """Know the rows that the store holds."""
        found = store.load_first(*HEAD)
        index = Segments.nothing()
        if found is not None:
            self._watermark, self._processing_time, self._machine.seen = numbers_of(found, _KNOWN)
            if is_in_buckets(found):
                self._machine.take_again(_moved(store, found, self._plan))
            else:
                index = found
        wanted = self._machine.wanted
        return StoredRows(store, Segments(store, KIND, index, SLICE, self._described, wanted))

    def _described(self, least: int, greatest: int) -> Mapping[bytes, bytes]:
        """Return what the metadata of a segment tells: its keys, and its time in ticks."""
        start, end = self._finder.slice_bounds(least, greatest)
        texts = {_NAMES: json.dumps(self._plan.query.keys), "start": str(start), "end": str(end)}
        return {name.encode(): text.encode() for name, text in texts.items()}

    def _save(self, stored: StoredRows) -> None:
        """Append the rows that came."""
        rows = self._machine.hand_over()
        if rows is not None:
            stored.segments.append(rows, self._finder.first_slice(self._watermark))
        numbers = (self._watermark, self._processing_time, self._machine.seen)
        named = dict(zip(_KNOWN, numbers, strict=True))
        save_head(stored.store, named, stored.segments.index())

    def _next_timers(self, stored: StoredRows) -> Timers:
        """Return the last tick of the first window that may hold something and has not fired."""
        least, _ = stored.segments.slices
        if len(least) == 0:
            return None, None
        window = max(
            self._finder.first_window(int(least.min())), self._finder.first_open(self._watermark)
        )
        _, last = self._finder.bounds(np.array([window]))
        return int(last[0]), None

    def state_size(self) -> dict[str, int]:
        """Return how many rows wait, in memory and in the store."""
        stored = 0 if self._stored is None else len(self._stored.segments)
        return {"rows": self._machine.waiting + stored}


def _moved(store: Store, index: pa.Table, plan: WindowPlan) -> pa.Table | None:
    """Take the rows out of a store that windows keep there, in order of arrival; None: none."""
    found = []
    for bucket in index["bucket"].to_pylist():
        windows, rows = (store.load_listed(kind, bucket) for kind in (WINDOWS, ROWS))
        found.append(rows_of_windows(windows, rows, plan.query))
        store.remove(WINDOWS, bucket)
        store.remove(ROWS, bucket)
    if not found:
        return None
    rows = pa.concat_tables(found, promote_options="default")
    return rows.take(pa.array(np.argsort(to_lane(rows.column(ARRIVAL)).values)))


def contents(rows: pa.Table) -> Contents:
    """Tell what a segment holds."""
    metadata = rows.schema.metadata or {}
    keys = [rows.column(name) for name in json.loads(metadata[_NAMES.encode()])]
    start, end = (int(metadata[name]) for name in (b"start", b"end"))
    return Contents({"rows": len(rows)}, keys, start, end)
