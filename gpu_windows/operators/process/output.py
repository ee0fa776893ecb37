"""Collects main and side outputs of a process function into emissions of bounded size."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import TypeAlias

import pyarrow as pa

from gpu_windows.functions.counts import Counts
from gpu_windows.functions.failures import describe_key
from gpu_windows.functions.side_outputs import GatheredRows, GatheredSides
from gpu_windows.operators.base import Emission
from gpu_windows.operators.counters import Counters
from gpu_windows.operators.keyed.values import UserKey, keyed_table
from gpu_windows.operators.results import TRACE

Key: TypeAlias = tuple[Hashable, ...]

#: Rows after which an emission is yielded.
EMISSION_ROWS = 1 << 16


class ProcessOutput:
    """Gathered output of an operator: results, side outputs, user counters.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of the results.
    sides : mapping of str to pyarrow.Schema
        Declared columns of the side outputs, by tag.
    keys : int
        Number of key columns.
    owner : str
        Name of the function in errors.
    user_key : UserKey
        Keys as users see them, for errors.
    trace : bool
        Whether results carry `gpu_windows.operators.results.TRACE`.
    timed : bool
        Whether the first column after the keys is the time of a result: `at` when it was emitted.
    """

    def __init__(
        self,
        schema: pa.Schema,
        sides: Mapping[str, pa.Schema],
        keys: int,
        owner: str,
        *,
        user_key: UserKey,
        trace: bool,
        timed: bool = False,
    ) -> None:
        fields, self._user_key = [*schema], user_key
        self._keys = pa.schema(fields[:keys])
        self._time = fields[keys] if timed else None
        self._main: GatheredRows[Key] = GatheredRows(pa.schema(fields[keys + timed :]), owner)
        #: Adds a result, given its key.
        self.emit = self._emit_traced if trace or timed else self._main.add
        #: The time of the current row or timer.
        self.at: int | None = None
        self._times: list[int | None] = []
        self._sides: GatheredSides[Key] = GatheredSides(sides, owner)
        self._trace = trace
        self.counts = Counts()
        self.cause: tuple[str, int | None] = ("element", None)
        self._causes: list[tuple[str, int | None]] = []
        self._no_rows = pa.table({})

    def _emit_traced(self, key: Key, row: Mapping[str, object]) -> None:
        self._main.add(key, row)
        self._times.append(self.at)
        self._causes.append(self.cause)

    def emit_aside(self, tag: str, key: Key, row: Mapping[str, object]) -> None:
        """Add a row to a side output; see `GatheredSides.add`."""
        self._sides.add(tag, key, row)

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
        results = keyed_table(self._keys, *self._main.take(self._describe))
        if self._time is not None:
            results = results.add_column(
                len(self._keys), self._time, pa.array(self._times, pa.int64())
            )
        if self._trace:
            for i, field in enumerate(TRACE):
                causes = [cause[i] for cause in self._causes]
                results = results.append_column(field, pa.array(causes, field.type))
        self._times, self._causes = [], []
        self.counts.clear()
        by_tag = self._sides.take(self._describe).items()
        sides = {tag: keyed_table(self._keys, *rows) for tag, rows in by_tag}
        return Emission(results, self._no_rows, counters, sides)

    def _describe(self, key: Key) -> str:
        return describe_key(self._user_key(key))
