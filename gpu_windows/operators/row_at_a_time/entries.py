"""Entries of the row-at-a-time operator's state as an Arrow table: a row each, flat columns.

An entry belongs to a key, and usually to one of its windows: the window's contents, a timer, and so
on (`KINDS`). An entry has the columns of its kind; the others are null. Those of a kind and a key
are in the operator's own order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from gpu_windows.operators.keyed import entries
from gpu_windows.operators.keyed.entries import KIND, key_column
from gpu_windows.operators.keyed.state import StateTable
from gpu_windows.operators.keyed.values import plain_type, stored_type
from gpu_windows.operators.row_at_a_time.contents import ContentsFormat
from gpu_windows.operators.state.keyed_table import TIMERS
from gpu_windows.planning.kinds.window import WindowQuery

#: Kinds of entries. State stores their index, so new ones go to the end.
KINDS = (
    "contents", "firings", "merging", "event_timers", "processing_timers",
    "trigger_state", "window_state", "key_state", "emitted",
)  # fmt: skip
#: Kinds that are timers, and the column of their times.
TIMES = {"event_timers": TIMERS[0], "processing_timers": TIMERS[1]}
#: Names of the counts of some kinds; those of others are their own.
_COUNTED = {"contents": "windows", "merging": "merging_windows"}
_ROWS = "rows"
#: Columns of the bounds of windows that have a row in the result table of a changelog.
EMITTED = ("emitted_start", "emitted_end")


def types_of(query: WindowQuery, states: Mapping[str, StateTable]) -> dict[str, pa.DataType]:
    """Return the columns of the entries of a query, and their types.

    Parameters
    ----------
    query : WindowQuery
    states : mapping of str to StateTable
        By their kind.
    """
    keys = (stored_type(query.schema.field(name).type) for name in query.keys)
    merging = ("state_start", "state_end") if query.merges else ()
    emitted = EMITTED if query.changes else ()
    longs = (*TIMERS, "start", "end", "count", "number", *merging, *emitted)
    columns = {
        KIND: pa.int8(),
        **{key_column(number): dtype for number, dtype in enumerate(keys)},
        **dict.fromkeys(longs, pa.int64()),
        "silent": pa.bool_(),
        **ContentsFormat(query).fields,
        **{
            state_column(kind, name): dtype
            for kind, state in states.items()
            for name, dtype in state.fields.items()
        },
    }
    return {name: plain_type(dtype) for name, dtype in columns.items()}


def state_column(kind: str, name: str) -> str:
    """Return the name of a column of declared state."""
    return f"{kind} {name}"


def entries_of(
    kind: str, columns: Mapping[str, pa.Array], types: Mapping[str, pa.DataType]
) -> pa.Table:
    """Return entries of a kind, given its columns; the other columns of entries are null."""
    return entries.entries_of(KINDS.index(kind), columns, types)


def select(table: pa.Table, kind: str) -> pa.Table:
    """Return the entries of a kind."""
    return entries.select(table, KINDS.index(kind))


def counts_of(table: pa.Table) -> Counter[str]:
    """Return the number of entries of each kind, and of the rows in windows."""
    numbers = entries.numbers_by_kind(table, len(KINDS))
    counts = Counter({_COUNTED.get(k, k): n for k, n in zip(KINDS, numbers, strict=True)})
    if _ROWS in table.column_names:
        lengths = pc.list_value_length(table.column(_ROWS))
        counts[_ROWS] = pc.sum(lengths, min_count=0).as_py()
    return counts
