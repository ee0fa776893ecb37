"""What the kinds of tables in a store hold; each store says it of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gpu_windows.operators.by_row import interval_join as join_by_row
from gpu_windows.operators.by_row import older
from gpu_windows.operators.by_row import over as over_by_row
from gpu_windows.operators.by_row import version_join as versions_by_row
from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.joins import stored_side, versions
from gpu_windows.operators.keyed import stored as keyed
from gpu_windows.operators.matching import stored as matching
from gpu_windows.operators.over import key_memory, stored_rows
from gpu_windows.operators.over import stored as over
from gpu_windows.operators.panes import deferred, deferred_sessions, tables
from gpu_windows.operators.panes import stored as panes
from gpu_windows.operators.process.broadcast_state import BROADCAST
from gpu_windows.operators.slices import stored as slices
from gpu_windows.operators.slices import stored_counts as counts
from gpu_windows.operators.state.directory import directory_contents, directory_kind
from gpu_windows.operators.state.entries import entries_contents
from gpu_windows.operators.state.head import HEAD, head_contents
from gpu_windows.operators.state.key_filters import filter_contents, filter_kind
from gpu_windows.operators.state.store import Contents
from gpu_windows.operators.state.timer_lists import timer_contents
from gpu_windows.operators.top import stored as top

_OF_KIND: dict[str, Callable[[pa.Table], Contents]] = {
    slices.KIND: slices.contents,
    panes.WINDOWS: tables.windows_contents,
    panes.ROWS: entries_contents,
    **dict.fromkeys(panes.TIMES, timer_contents),
    HEAD[0]: head_contents,
    deferred.KIND: deferred.contents,
    deferred_sessions.KIND: entries_contents,
    **dict.fromkeys(
        (*stored_side.KINDS, join_by_row.KIND, versions_by_row.KIND), stored_side.by_key_contents
    ),
    **dict.fromkeys(stored_side.ENDS, stored_side.at_end_contents),
    **dict.fromkeys(
        map(directory_kind, (*stored_side.KINDS, *stored_side.ENDS, deferred_sessions.KIND)),
        directory_contents,
    ),
    versions.VERSIONS: entries_contents,
    versions.ENDS[0]: timer_contents,
    filter_kind(versions.VERSIONS): filter_contents,
    **dict.fromkeys((counts.COUNTED, counts.SLICES), entries_contents),
    keyed.KEYED: entries_contents,
    **dict.fromkeys(keyed.AT, timer_contents),
    **dict.fromkeys(
        map(filter_kind, (keyed.KEYED, counts.COUNTED, panes.WINDOWS)), filter_contents
    ),
    BROADCAST: entries_contents,
    **dict.fromkeys((over.WAITING, over.GIVEN), stored_rows.rows_contents),
    over.CLEANUPS: stored_rows.timers_contents,
    over.INDEXES: entries_contents,
    over_by_row.KIND: over_by_row.contents,
    **dict.fromkeys(
        map(directory_kind, (over.WAITING, over.GIVEN, over.CLEANUPS)), directory_contents
    ),
    **dict.fromkeys((key_memory.KEYS, key_memory.LAST_ROWS), entries_contents),
    filter_kind(key_memory.KEYS): filter_contents,
    **dict.fromkeys((top.KEYS, top.FIRST), entries_contents),
    top.TIMES[1]: timer_contents,
    filter_kind(top.KEYS): filter_contents,
    matching.WAITING: stored_rows.rows_contents,
    directory_kind(matching.WAITING): directory_contents,
    **dict.fromkeys((matching.KEYS, matching.ROWS, matching.INDEX), entries_contents),
    matching.TIMES[0]: timer_contents,
    filter_kind(matching.KEYS): filter_contents,
    older.KIND: older.memory_contents,
}
#: What leaves out the slices of a table that are over.
_ALIVE: dict[str, Callable[[pa.Table, int], pa.Table]] = {slices.KIND: slices.alive}
#: The kinds that are described.
KINDS = frozenset(_OF_KIND)


def contents_of(kind: str, table: pa.Table, alive: int | None = None) -> Contents:
    """Tell what a table in a store holds; of a kind that nobody describes, how many entries.

    Parameters
    ----------
    kind : str
    table : pyarrow.Table
    alive : int, optional
        What `first_alive` tells of the operator's head: slices before it are left out.
    """
    if alive is not None and kind in _ALIVE:
        table = _ALIVE[kind](table, alive)
    describe = _OF_KIND.get(kind)
    return Contents({"entries": len(table)}) if describe is None else describe(table)


def first_alive(head: pa.Table) -> int | None:
    """Return the first slice that is not over, as an operator's head tells it; None if it does not.

    A blob of slices may hold some that are over.
    """
    return slices.first_alive(head)


def hashes_of(columns: Sequence[pa.Array | pa.ChunkedArray]) -> NDArray[np.int64]:
    """Return the hash of every distinct entry of some columns, such as the keys of a `Contents`.

    They come in some order, and are the same in every process. Null and 0 differ here, which have
    one hash where rows are dealt to shards.
    """
    if not columns or len(columns[0]) == 0:
        return np.empty(0, np.int64)
    told = [*columns, *map(pc.is_null, columns)]
    encoder = KeyEncoder([column.type for column in told])
    codes = np.unique(encoder.encode(told))
    return encoder.hashes()[codes]
