"""Conversion of the windows of a machine to Arrow tables and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.columns.numeric import to_numeric
from gpu_windows.operators.columns.partials import PartialColumn, State
from gpu_windows.operators.columns.ranges import offsets
from gpu_windows.operators.panes.state import WIDE, EmittedWindows, PaneState
from gpu_windows.rules.window_operator.layout import Panes

Ints = NDArray[np.int64]

#: Names of columns in a store. They stay as they are, whatever fields are called: a checkpoint that
#: was written with them is to be read.
_KEY, _NUMBER, _ROWS = "key", "number", "rows"
_COLUMNS = {
    "start": "slotstart",
    "last": "slotlast",
    "cleanup": "slotcleanup",
    "values": "slotvalues",
    "references": "slotreferences",
    "marks": "slotmarks",
    "timers": "slottimers",
    "fired": "slotfired",
    "row_count": "slotheld",
    "alive": "slotalive",
}
#: Links of the lists of rows while a machine runs; not valid between two calls.
_LINKS = {"head", "tail", "list_length"}
#: Windows with a row in the result table, of sessions that emit changes.
_EMITTED = ("emittedstart", "emittedlast")
assert {*_COLUMNS, *_LINKS} == {*Panes._fields}


def to_table(
    state: PaneState, keys: KeyEncoder, columns: Sequence[PartialColumn], nodes: int
) -> pa.Table:
    """Return windows as a table, a row each.

    Parameters
    ----------
    state : PaneState
    keys : KeyEncoder
        The encoder of the codes in ``state``; the table has key values.
    columns : list of PartialColumn
        Of the partials.
    nodes : int
        Nodes of the trigger's program: the number of values that a window has of some fields.
    """
    made: dict[str, Any] = {
        f"{_KEY}{i}": values for i, values in enumerate(keys.decode(state.codes))
    }
    made[_NUMBER] = state.numbers
    begins = pa.array(state.begins)
    made[_ROWS] = pa.LargeListArray.from_arrays(begins, pa.array(state.rows))
    for name, stored in _COLUMNS.items():
        values = pa.array(getattr(state.panes, name))
        if name in WIDE:
            values = pa.FixedSizeListArray.from_arrays(values, nodes)
        made[stored] = values
    for column, partial in zip(columns, state.partials, strict=True):
        arrays = column.to_arrow(partial)
        made |= {field.name: array for field, array in zip(column.fields, arrays, strict=True)}
    return pa.table(made | _emitted_columns(state))


def _emitted_columns(state: PaneState) -> dict[str, pa.Array]:
    """Return the windows with a row in the result table as lists; empty if there are none."""
    emitted = state.emitted
    if emitted is None:
        return {}
    begins = pa.array(emitted.begins)
    return {
        name: pa.LargeListArray.from_arrays(begins, pa.array(values))
        for name, values in zip(_EMITTED, (emitted.start, emitted.last), strict=True)
    }


def _read_emitted(table: pa.Table) -> EmittedWindows | None:
    """Return the windows in the columns of `_emitted_columns`."""
    if _EMITTED[0] not in table.column_names:
        return None
    start, last = (table.column(name).combine_chunks() for name in _EMITTED)
    return EmittedWindows(
        offsets(_ints(start.value_lengths())), _ints(start.flatten()), _ints(last.flatten())
    )


def from_table(
    table: pa.Table, keys: KeyEncoder, columns: Sequence[PartialColumn], key_count: int
) -> PaneState:
    """Return the windows in a table, with codes of ``keys``, sorted by (code, number).

    Parameters
    ----------
    table : pyarrow.Table
        A table of `to_table`, maybe of an older version.
    keys : KeyEncoder
    columns : list of PartialColumn
        Columns of the partials of windows.
    key_count : int
        Number of key columns.

    Raises
    ------
    StateCorruptedError
        If windows have neither rows nor partials.
    """
    count = len(table)
    none = np.zeros(count, np.int64)
    parts = {name: none - (name != "list_length") for name in _LINKS}
    for name, stored in _COLUMNS.items():
        values = table.column(stored).combine_chunks()
        flat = values.flatten() if name in WIDE else values
        parts[name] = flat.to_numpy(zero_copy_only=False).copy()
    lists = table.column(_ROWS).combine_chunks()
    lengths = _ints(lists.value_lengths())
    keeps_rows = bool((lengths == parts["row_count"]).all())
    partials = (_read_partial(table, column, keeps_rows=keeps_rows) for column in columns)
    state = PaneState(
        keys.encode([table.column(f"{_KEY}{i}") for i in range(key_count)]),
        _ints(table.column(_NUMBER)),
        Panes(**parts),
        offsets(lengths),
        _ints(lists.flatten()),
        tuple(partials),
        _read_emitted(table),
    )
    return state.sort(columns)


def _read_partial(table: pa.Table, column: PartialColumn, *, keeps_rows: bool) -> State:
    """Return a partial of every window, which is empty if windows retain their rows instead.

    Raises
    ------
    StateCorruptedError
        If there is neither.
    """
    names = [field.name for field in column.fields]
    missing = [name for name in names if name not in table.column_names]
    if missing == names and keeps_rows:
        return column.take(column.nothing(), np.zeros(len(table), np.int64))
    return column.from_table(table)


def flatten_lists(windows: pa.Table) -> Ints:
    """Return the lists of windows, concatenated; ``windows``: a table of `to_table`."""
    return _ints(windows.column(_ROWS).combine_chunks().flatten())


def count_rows(windows: pa.Table) -> int:
    """Return the number of rows in windows; ``windows``: a table of `to_table`."""
    return int(_ints(windows.column(_COLUMNS["row_count"])).sum())


def _ints(column: pa.Array | pa.ChunkedArray) -> Ints:
    values: Ints = to_numeric(column).values
    return values
