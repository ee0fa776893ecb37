"""Collects the output of the row-at-a-time operator into emissions of a bounded size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from gpu_windows.functions.checked_results import checked_column
from gpu_windows.functions.failures import describe_pane
from gpu_windows.functions.side_outputs import GatheredSides
from gpu_windows.functions.top_changes import Change
from gpu_windows.operators.base import Emission
from gpu_windows.operators.counters import Counters
from gpu_windows.operators.keyed.backend import Key
from gpu_windows.operators.keyed.timers import Pane
from gpu_windows.operators.keyed.values import UserKey, keyed_table
from gpu_windows.operators.results import TRACE
from gpu_windows.planning.kinds.window_plan import WindowPlan
from gpu_windows.planning.own_columns import REASON
from gpu_windows.user_values import copy_values
from gpu_windows.vocabulary.rich_functions import RichFunction
from gpu_windows.vocabulary.windows.base import window_of


@dataclass(frozen=True)
class Firing:
    """The cause, number and timing of a firing.

    Parameters
    ----------
    fired : {"element", "event_time", "processing_time"}
        Its cause.
    time : int, optional
        The timer's time.
    number : int
        Number of the firing of this key and window, from 0.
    timing : {"early", "on_time", "late"}
        Relative to the window's end.
    """

    fired: str
    time: int | None
    number: int
    timing: str

    @classmethod
    def at(cls, fired: str, time: int | None, number: int, *, now: int, end: int) -> Firing:
        """Return a firing with its timing.

        ``now``: event or processing time; ``end``: the window's last tick.
        """
        if fired != "element" and time == end:
            return cls(fired, time, number, "on_time")
        is_late = now >= end and (time is None or time > end)
        return cls(fired, time, number, "late" if is_late else "early")


#: Results after which an emission is yielded.
EMISSION_ROWS = 1 << 16


class Output:
    """The pending output of one call of the operator.

    Parameters
    ----------
    plan : WindowPlan
    batch : pyarrow.Table
        The rows of the call; none for a watermark.
    user_counts : Counter
        Counters of user code; the next emission takes them.
    sides : sequence of GatheredSides
        Side outputs of user code; the next emission takes them.
    trace : bool
        Whether results carry `gpu_windows.operators.results.TRACE`.
    """

    def __init__(
        self,
        plan: WindowPlan,
        batch: pa.Table,
        user_counts: Counter[str],
        sides: Sequence[GatheredSides[Key]],
        *,
        trace: bool,
    ) -> None:
        self._schema = plan.result_schema
        if trace:
            self._schema = pa.schema([*self._schema, *TRACE])
        self._trace = trace
        self._firing_columns = plan.query.firing_columns
        self._owners = plan.query.function.owners
        self._no_values = [None] * len(plan.query.function.output_fields(plan.query.schema))
        self._batch = batch
        self._user_counts, self._sides = user_counts, sides
        self._keys = pa.schema([*self._schema][: len(plan.query.keys)])
        self._user_key = UserKey(plan.query.display_key_fields)
        self._start()

    def _start(self) -> None:
        self._rows: list[tuple[object, ...]] = []
        self._rejected: list[int] = []
        self._reasons: list[str] = []
        self._counts: Counter[str] = Counter()

    @property
    def is_full(self) -> bool:
        """Whether enough is pending for an emission."""
        return len(self._rows) + sum(map(len, self._sides)) >= EMISSION_ROWS

    @property
    def is_empty(self) -> bool:
        """Whether nothing is pending, not even a count."""
        return not (self._counts or self._user_counts or any(self._sides))

    def count(self, counter: str) -> None:
        """Add 1 to a field of `gpu_windows.operators.base.Counters`."""
        self._counts[counter] += 1

    def reject(self, index: int, reason: str) -> None:
        """Reject row ``index`` of the batch; the reason is also the counter's name."""
        self.count(reason)
        self._rejected.append(index)
        self._reasons.append(reason)

    def retract(self, gone: Iterable[Pane], firing: Firing) -> None:
        """Add a deletion for each window whose row a firing removes."""
        for pane in gone:
            self.emit(pane, self._no_values, firing, Change.DELETE)

    def emit(
        self, pane: Pane, values: Sequence[object], firing: Firing, change: Change | None = None
    ) -> None:
        """Add a result, and its kind of change."""
        self.count("fired")
        trace = (firing.fired, firing.time) if self._trace else ()
        extra: tuple[object, ...] = ()
        if self._firing_columns:
            extra = (firing.number, firing.timing)
        if change is not None:
            extra = (*extra, change.name.lower())
        window = pane.window
        given = copy_values(tuple(values)) if self._owners else values
        self._rows.append((*pane.key, window.start, window.end, *given, *extra, *trace))

    def rest(self) -> Iterator[Emission]:
        """Yield the pending output, if there is any."""
        if not self.is_empty:
            yield self.take()

    def take(self) -> Emission:
        """Return the pending output, and clear it."""
        columns = zip(*self._rows, strict=True) if self._rows else ([] for _ in self._schema)
        arrays = [
            self._column(list(values), field)
            for values, field in zip(columns, self._schema, strict=True)
        ]
        results = pa.Table.from_arrays(arrays, schema=self._schema)
        late = self._batch.take(pa.array(self._rejected, pa.int64()))
        late = late.append_column(REASON, pa.array(self._reasons, pa.string()))
        counters = Counters(**self._counts, user=tuple(sorted(self._user_counts.items())))
        self._user_counts.clear()
        self._start()
        by_tag = (each for sides in self._sides for each in sides.take().items())
        sides = {tag: keyed_table(self._keys, *rows) for tag, rows in by_tag}
        return Emission(results, late, counters, sides)

    def _column(self, values: list[object], field: pa.Field) -> pa.Array:
        """Build a result column; values of a user function are checked."""
        owner = self._owners.get(field.name)
        if owner is None:
            return pa.array(values, field.type)
        return checked_column(values, field, owner, self._describe)

    def _describe(self, number: int) -> str:
        """Describe the key and window of a pending result."""
        keys = len(self._keys)
        row: Any = self._rows[number]
        window = window_of(row[keys], row[keys + 1])
        return describe_pane(self._user_key(row[:keys]), window)


def sides_of(part: RichFunction | None) -> GatheredSides[Key]:
    """Return empty side outputs of a user function."""
    schemas = {} if part is None else part.side_outputs
    return GatheredSides(schemas, type(part).__name__)
