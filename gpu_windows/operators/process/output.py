"""Collects main and side outputs of a process function into emissions of bounded size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from gpu_windows.functions.counts import Counts
from gpu_windows.functions.failures import describe_key, describe_time, line_of
from gpu_windows.functions.side_outputs import GatheredRows, GatheredSides
from gpu_windows.operators.base import Emission
from gpu_windows.operators.counters import Counters
from gpu_windows.operators.keyed.backend import Key
from gpu_windows.operators.keyed.values import UserKey, keyed_table
from gpu_windows.operators.results import TRACE
from gpu_windows.planning.kinds.process import ProcessPlan

#: What a row is emitted for: key, time, the handler that gives it, and `TRACE`'s name of the cause.
Origin: TypeAlias = tuple[Key, int | None, Callable[..., Any], str]
#: The cause of what is given for a row; that for a timer is its time domain.
ELEMENT = "element"

#: Rows after which an emission is yielded.
EMISSION_ROWS = 1 << 16


class ProcessOutput:
    """Gathered output of an operator: results, side outputs, user counters.

    Parameters
    ----------
    plan : ProcessPlan
    trace : bool
        Whether results carry `gpu_windows.operators.results.TRACE`.
    """

    def __init__(self, plan: ProcessPlan, *, trace: bool) -> None:
        query, fields, keys = plan.query, [*plan.result_schema], len(plan.query.keys)
        owner, timed = query.process.name, query.gives_times
        self._user_key = UserKey(query.display_key_fields)
        self._keys = pa.schema(fields[:keys])
        self._time = fields[keys] if timed else None  # of a result: that of its row or timer
        self._main: GatheredRows[Origin] = GatheredRows(pa.schema(fields[keys + timed :]), owner)
        #: Adds a result, given its origin.
        self.emit = self._main.add
        #: Of the current row or timer.
        self.origin: Origin = (), None, self.take, ELEMENT
        self._sides: GatheredSides[Origin] = GatheredSides(query.declared_sides, owner)
        self._trace = trace
        self.counts = Counts()
        self._no_rows = pa.table({})

    def emit_aside(self, tag: str, row: Mapping[str, object]) -> None:
        """Add a row to a side output; see `GatheredSides.add`."""
        self._sides.add(tag, self.origin, row)

    @property
    def is_full(self) -> bool:
        """Whether enough is pending for an emission."""
        return len(self._main.rows) + len(self._sides) >= EMISSION_ROWS

    def rest(self) -> Iterator[Emission]:
        """Yield the pending output, if there is any."""
        if self._main.rows or self._sides or self.counts:
            yield self.take()

    def take(self) -> Emission:
        """Return the pending output, and clear it."""
        fired = len(self._main.rows)
        counters = Counters(fired=fired, user=tuple(sorted(self.counts.items())))
        origins, rows = self._main.take(self._describe)
        results = self._with_keys(origins, rows)
        times = [origin[1] for origin in origins] if self._time is not None or self._trace else []
        if self._time is not None:
            results = results.add_column(len(self._keys), self._time, pa.array(times, pa.int64()))
        if self._trace:
            causes = [origin[3] for origin in origins]
            due = [None if each == ELEMENT else at for each, at in zip(causes, times, strict=True)]
            for field, values in zip(TRACE, (causes, due), strict=True):
                results = results.append_column(field, pa.array(values, field.type))
        self.counts.clear()
        by_tag = self._sides.take(self._describe).items()
        sides = {tag: self._with_keys(*rows) for tag, rows in by_tag}
        return Emission(results, self._no_rows, counters, sides)

    def _with_keys(self, origins: Sequence[Origin], rows: pa.Table) -> pa.Table:
        return keyed_table(self._keys, [origin[0] for origin in origins], rows)

    def _describe(self, origin: Origin) -> str:
        key, time, handler, cause = origin
        at = (
            ""
            if time is None
            else f", {'' if cause == ELEMENT else 'timer of '}{describe_time(time)}"
        )
        return f"{describe_key(self._user_key(key))}{at}, in {handler.__name__}{line_of(handler)}"
