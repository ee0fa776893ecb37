"""The machine of windows that fire once, at their end: their rows wait until then, slice by slice.

Nothing happens to such a window before the watermark passes its end, so nothing is done for it: no
list of its rows is held, and a row is held once, in however many windows it is.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from gpu_windows.functions.top import Top
from gpu_windows.kernels.backend import Backend
from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.columns.lanes import to_lane
from gpu_windows.operators.columns.top import first_rows
from gpu_windows.operators.device import Kernels, Map
from gpu_windows.operators.panes.runner import Arrived, Ints, Waiting, Work, together
from gpu_windows.operators.panes.single import PaneMachine
from gpu_windows.operators.rejected import Rejected
from gpu_windows.planning.plan import ARRIVAL, SLICE, WindowPlan
from gpu_windows.rules import LONG_MAX
from gpu_windows.rules.window_operator.layout import EVENT_TIMER, Settings

#: Rows that may wait until those are looked for that no window wants.
_ROOM = 1 << 12


class DeferringMachine(PaneMachine):
    """Windows of event time that fire once, at their end."""

    def __init__(self, plan: WindowPlan, kernels: Kernels, *, trace: bool) -> None:
        super().__init__(plan, kernels, trace=trace)
        self._used = [*dict.fromkeys([*self._used, *plan.query.keys])]
        function = plan.query.function
        self._top = function if isinstance(function, Top) and plan.query.evictor is None else None
        self._wanted_then = 0  # rows that waited after those were left out that no window wants

    # ---- between calls, in a store

    def hand_over(self) -> pa.Table | None:
        """Return the rows that wait, with their `SLICE`, and forget them; None if none do."""
        if not self._waiting:
            return None
        table, arrived = self._arrived()
        rows = table.append_column(SLICE, pa.array(arrived.places))
        if self._top is None:
            return rows
        self._wanted_then = 0
        return self.wanted(rows)

    def lend(self, table: pa.Table) -> None:
        """Take rows as `hand_over` gave them, for the next run only: a store holds them."""
        codes = self._keys.encode([table.column(name) for name in self._query.keys])
        slices = to_lane(table.column(SLICE)).values
        rows = table.drop_columns([SLICE])
        self._waiting.append(Waiting(rows, codes, slices, is_lent=True))

    # ---- a call

    def take(self, batch: pa.Table, watermark: int, processing_time: int) -> Rejected:
        """Have the rows that may be in a window wait for the next run; return the others.

        Where windows want their first rows only, others of the same key and slice go as soon as
        enough have come: they are of no window.
        """
        rejected = super().take(batch, watermark, processing_time)
        if self._top is not None and self.waiting > 2 * self._wanted_then + _ROOM:
            own = [piece for piece in self._waiting if not piece.is_lent]
            table, arrived = together([], own)
            piece = self._wanted_of(self._top, Waiting(table, arrived.codes, arrived.places))
            self._waiting = [*(each for each in self._waiting if each.is_lent), piece]
            self._wanted_then = self.waiting
        return rejected

    def wanted(self, rows: pa.Table) -> pa.Table:
        """Return of rows as `hand_over` gave them those that windows may want."""
        if self._top is None:
            return rows
        rows = rows.take(pa.array(np.argsort(to_lane(rows.column(ARRIVAL)).values, kind="stable")))
        encoder = KeyEncoder([rows.column(name).type for name in self._query.keys])
        codes = encoder.encode([rows.column(name) for name in self._query.keys])
        piece = Waiting(rows, codes, to_lane(rows.column(SLICE)).values)
        return self._wanted_of(self._top, piece).rows

    def _wanted_of(self, top: Top, piece: Waiting) -> Waiting:
        """Return the rows that are among the first of their key and slice."""
        codes, places = piece.codes, piece.places

        def grouped(backend: Backend, _: Map) -> tuple[Ints, Ints]:
            groups = backend.grouping.group(
                backend.to_device(codes), backend.to_device(places), int(codes.max(initial=-1)) + 1
            )
            order = backend.grouping.order_of(groups)
            return backend.to_host(groups.rows), backend.to_host(order)

        counts, order = self._kernels.run(len(codes), grouped)
        of = np.repeat(np.arange(len(counts)), counts)
        crowded = np.repeat(counts > top.count, counts)
        if not crowded.any():
            return piece
        some = order[crowded]
        columns = (piece.rows.column(top.columns[place]) for place, _ in top.by)
        taken = [column.take(pa.array(some)) for column in columns]
        by = [*zip(taken, (descending for _, descending in top.by), strict=True)]
        first, _ = first_rows(top.count, by, of[crowded])
        kept = np.ones(len(codes), np.bool_)
        kept[some] = False
        kept[some[first]] = True
        return piece.take(kept)

    def _has_work(self, settings: Settings) -> bool:
        if settings.advance != EVENT_TIMER:
            return False
        first, last = self._due_windows(settings)
        return any(self._finder.are_in(p.places, first, last).any() for p in self._waiting)

    def _work(self, settings: Settings) -> Work:
        waiting, finder = self._waiting, self._finder
        first, last = self._due_windows(settings)
        due = [piece.take(finder.are_in(piece.places, first, last)) for piece in waiting]
        own = (piece for piece in waiting if not piece.is_lent)
        rest = [piece.take(finder.are_in(piece.places, last + 1, LONG_MAX)) for piece in own]
        self._waiting = [piece for piece in rest if len(piece.codes)]
        table, arrived = _in_order(*together([], due))
        return self._on_new(table, arrived, self._found(arrived, first, last), settings)

    def _due_windows(self, settings: Settings) -> tuple[int, int]:
        """Return the numbers of the first and the last window that is due."""
        return self._finder.first_open(settings.watermark), self._finder.last_due(settings.until)


def _in_order(rows: pa.Table, arrived: Arrived) -> tuple[pa.Table, Arrived]:
    """Return rows in order of arrival."""
    arrival = to_lane(rows.column(ARRIVAL)).values
    if (np.diff(arrival) > 0).all():
        return rows, arrived
    order = np.argsort(arrival)
    taken = rows.take(pa.array(order)).combine_chunks()
    return taken, Arrived(arrived.base, arrived.codes[order], arrived.places[order])
