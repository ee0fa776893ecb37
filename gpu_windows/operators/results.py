"""Result tables: keys, window bounds, result columns, and the cause of each firing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from gpu_windows.functions.top_changes import Change, change_names
from gpu_windows.planning.own_columns import CHANGE, FIRING, INSERT, UPDATE_AFTER

#: Extra result columns of a traced operator: what caused the firing ("element" or "event_time")
#: and the timer's time in ticks (null for "element").
TRACE = (pa.field("fired", pa.string()), pa.field("fired_time", pa.int64()))


def add_trace(results: pa.Table, cause: str) -> pa.Table:
    """Return results that no window timer fired, with the columns of `TRACE`."""
    fired, time = TRACE
    table = results.append_column(fired, pa.array([cause] * len(results), fired.type))
    return table.append_column(time, pa.nulls(len(results), time.type))


@dataclass(frozen=True)
class Fired:
    """Properties of the firings of results: an array each, or one value for all.

    Parameters
    ----------
    start, end : int64[n], optional
        None for windows without bounds.
    number : int64[n] or int
        Which firing of its window it is.
    timing : str[n] or str
        "early", "on_time" or "late"; "" where not needed.
    cause : str[n] or str
        Cause of the firing, "element" or a kind of timer.
    time : int64[n] or masked array, optional
        Time of the timer that made it fire, in ticks; null or None where a row did.
    change : str[n] or str, optional
        Kind of change; None: every firing of a window but the first replaces the one before it.
    """

    start: Any
    end: Any
    number: Any
    timing: Any
    cause: Any
    time: Any
    change: Any = None

    @property
    def changes(self) -> Any:
        """The kind of change of every result, or one for all."""
        if self.change is not None:
            return self.change
        if np.ndim(self.number) == 0:
            return INSERT if self.number == 0 else UPDATE_AFTER
        kinds = np.where(self.number == 0, Change.INSERT, Change.UPDATE_AFTER)
        return change_names(kinds)


def result_table(
    schema: pa.Schema, keys: list[Any], windows: int, fired: Fired, columns: list[Any]
) -> pa.Table:
    """Return results of ``schema``: keys, bounds, columns; `FIRING`, `CHANGE`, `TRACE` if it has.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of the results.
    keys : list of pyarrow.Array
        One per key column, with a value per result.
    windows : int
        Number of results.
    fired : Fired
    columns : list of pyarrow.Array
        Results of the window function.
    """

    def spread(value: Any, dtype: pa.DataType) -> pa.Array:
        if value is None:
            return pa.nulls(windows, dtype)
        if isinstance(value, pa.Array):
            return value
        return pa.array(np.broadcast_to(value, windows), dtype)

    found = [*keys, spread(fired.start, pa.int64()), spread(fired.end, pa.int64()), *columns]
    extra = (
        (FIRING[0], fired.number),
        (FIRING[1], fired.timing),
        (CHANGE, fired.changes),
        *zip(TRACE, (fired.cause, fired.time), strict=True),
    )
    found += [spread(value, field.type) for field, value in extra if field.name in schema.names]
    return pa.table(found, schema=schema)
