"""State machine of windows that fire once, at their end: rows are buffered by slice until then.

Such a window does not change before the watermark passes its end, so it has no state of its own: no
list of its rows is stored, and a row is stored once, however many windows it is in.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from gpu_windows.functions.top import Top
from gpu_windows.kernels.backend import Backend
from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.columns.numeric import to_numeric
from gpu_windows.operators.columns.top_n import first_rows
from gpu_windows.operators.counters import Rejected
from gpu_windows.operators.device import Kernels, Map
from gpu_windows.operators.panes.runner import BufferedRows, Ints, NewRows, Work, concat_rows
from gpu_windows.operators.panes.single import PaneMachine
from gpu_windows.planning.kinds.window_plan import WindowPlan
from gpu_windows.planning.plan import ARRIVAL, SLICE
from gpu_windows.rules import LONG_MAX
from gpu_windows.rules.window_operator.layout import EVENT_TIMER, Settings

#: Rows that are added to the buffer before it is pruned again.
_PRUNE_AFTER = 1 << 12


class FireAtEndMachine(PaneMachine):
    """State machine of event-time windows that fire once, at their end."""

    def __init__(self, plan: WindowPlan, kernels: Kernels, *, trace: bool) -> None:
        super().__init__(plan, kernels, trace=trace)
        self._used = [*dict.fromkeys([*self._used, *plan.query.keys])]
        function = plan.query.function
        self._top = function if isinstance(function, Top) and plan.query.evictor is None else None
        self._count_after_pruning = 0  # buffered rows after the last pruning

    # ---- between calls, in a store

    def drain_rows(self) -> pa.Table | None:
        """Empty the buffer; return its rows with their `SLICE`, or None if there are none."""
        if not self._buffered:
            return None
        table, arrived = self._drain_buffer()
        rows = table.append_column(SLICE, pa.array(arrived.places))
        if self._top is None:
            return rows
        self._count_after_pruning = 0
        return self.prune_rows(rows)

    def load_stored_rows(self, table: pa.Table) -> None:
        """Buffer rows of the store, as `drain_rows` returned them, for the next run only."""
        codes = self.keys.encode([table.column(name) for name in self._query.keys])
        slices = to_numeric(table.column(SLICE)).values
        rows = table.drop_columns([SLICE])
        self._buffered.append(BufferedRows(rows, codes, slices, is_from_store=True))

    # ---- a call

    def take(self, batch: pa.Table, watermark: int, processing_time: int) -> Rejected:
        """Buffer the rows that may be in a window for the next run; return the others.

        If windows need their first rows only, other rows of the same key and slice are dropped
        whenever the buffer has doubled and grown by `_PRUNE_AFTER` rows.
        """
        rejected = super().take(batch, watermark, processing_time)
        if (
            self._top is not None
            and self.buffered_count > 2 * self._count_after_pruning + _PRUNE_AFTER
        ):
            own = [piece for piece in self._buffered if not piece.is_from_store]
            table, arrived = concat_rows([], own)
            piece = self._select_first_rows(
                self._top, BufferedRows(table, arrived.codes, arrived.places)
            )
            self._buffered = [*(each for each in self._buffered if each.is_from_store), piece]
            self._count_after_pruning = self.buffered_count
        return rejected

    def prune_rows(self, rows: pa.Table) -> pa.Table:
        """Return the rows, as `drain_rows` returned them, that windows may still need."""
        if self._top is None:
            return rows
        rows = rows.take(
            pa.array(np.argsort(to_numeric(rows.column(ARRIVAL)).values, kind="stable"))
        )
        encoder = KeyEncoder([rows.column(name).type for name in self._query.keys])
        codes = encoder.encode([rows.column(name) for name in self._query.keys])
        piece = BufferedRows(rows, codes, to_numeric(rows.column(SLICE)).values)
        return self._select_first_rows(self._top, piece).rows

    def _select_first_rows(self, top: Top, piece: BufferedRows) -> BufferedRows:
        """Return the rows that are among the first ``top.count`` of their key and slice."""
        codes, places = piece.codes, piece.places

        def group(backend: Backend, _: Map) -> tuple[Ints, Ints]:
            groups = backend.grouping.group(
                backend.to_device(codes), backend.to_device(places), int(codes.max(initial=-1)) + 1
            )
            order = backend.grouping.order_of(groups)
            return backend.to_host(groups.rows), backend.to_host(order)

        counts, order = self._kernels.run(len(codes), group)
        of = np.repeat(np.arange(len(counts)), counts)
        crowded = np.repeat(counts > top.count, counts)
        if not crowded.any():
            return piece
        some = order[crowded]
        columns = (piece.rows.column(top.columns[place]) for place, _ in top.by)
        columns_of_some = [column.take(pa.array(some)) for column in columns]
        by = [*zip(columns_of_some, (descending for _, descending in top.by), strict=True)]
        first, _ = first_rows(top.count, by, of[crowded])
        mask = np.ones(len(codes), np.bool_)
        mask[some] = False
        mask[some[first]] = True
        return piece.filter(mask)

    def _has_work(self, settings: Settings) -> bool:
        if settings.advance != EVENT_TIMER:
            return False
        first, last = self._due_windows(settings)
        return any(self.finder.are_in(p.places, first, last).any() for p in self._buffered)

    def _prepare_work(self, settings: Settings) -> Work:
        buffered, finder = self._buffered, self.finder
        first, last = self._due_windows(settings)
        due = [piece.filter(finder.are_in(piece.places, first, last)) for piece in buffered]
        own = (piece for piece in buffered if not piece.is_from_store)
        rest = [piece.filter(finder.are_in(piece.places, last + 1, LONG_MAX)) for piece in own]
        self._buffered = [piece for piece in rest if len(piece.codes)]
        table, arrived = _sort_by_arrival(*concat_rows([], due))
        return self._on_new(table, arrived, self._find_windows(arrived, first, last), settings)

    def _due_windows(self, settings: Settings) -> tuple[int, int]:
        """Return the numbers of the first and the last window that is due."""
        return self.finder.first_open(settings.watermark), self.finder.last_due(settings.until)


def _sort_by_arrival(rows: pa.Table, arrived: NewRows) -> tuple[pa.Table, NewRows]:
    """Return rows in order of arrival."""
    arrival = to_numeric(rows.column(ARRIVAL)).values
    if (np.diff(arrival) > 0).all():
        return rows, arrived
    order = np.argsort(arrival)
    sorted_rows = rows.take(pa.array(order)).combine_chunks()
    return sorted_rows, NewRows(arrived.base, arrived.codes[order], arrived.places[order])
