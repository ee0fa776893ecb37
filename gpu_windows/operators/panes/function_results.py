"""Results of the window function from the rows of firings, many windows at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.aggregates.definitions import BoundAggregate
from gpu_windows.functions.vector_results import Piece
from gpu_windows.functions.vector_window import WindowBatch
from gpu_windows.functions.window import Collect
from gpu_windows.operators.batch_functions import Evaluator
from gpu_windows.operators.columns.list_aggregates import aggregate_lists
from gpu_windows.operators.columns.lowering import lower
from gpu_windows.operators.columns.partials import PartialColumn, State
from gpu_windows.operators.columns.ranges import offsets
from gpu_windows.planning.kinds.window import WINDOW_END, WINDOW_START, WindowQuery
from gpu_windows.planning.plan import ARRIVAL

Ints = NDArray[np.int64]


def run_lists(
    columns: Sequence[PartialColumn], states: Sequence[State], begins: Ints
) -> tuple[State, ...]:
    """Combine every entry with those before it in its run."""
    if len(begins) == 0:
        return tuple(states)
    pairs = zip(columns, states, strict=True)
    return tuple(column.running(begins, state) for column, state in pairs)


def result_columns(
    query: WindowQuery, columns: Sequence[PartialColumn], states: Sequence[State],
    lists: tuple[pa.Table, Ints] | None = None,
) -> list[Any]:  # fmt: skip
    """Return the result columns of aggregates from their partials.

    ``lists``: the rows of all windows and the number of each, for those that need them.
    """
    states_of = {column.partial: state for column, state in zip(columns, states, strict=True)}

    def result(bound: BoundAggregate) -> pa.Array:
        if not bound.needs_rows:
            return lower(bound, states_of)
        assert lists is not None, "such a query keeps rows"
        rows, lengths = lists
        return aggregate_lists(bound, rows, lengths)

    return [result(bound) for bound in query.function.built_in]


def collect_lists(query: WindowQuery, rows: pa.Table, lengths: Ints) -> list[pa.Array]:
    """Return the result columns of `Collect`: a list of each column for every firing."""
    assert isinstance(query.function, Collect)
    edges = pa.array(offsets(lengths).astype(np.int32))
    lists = []
    for name in query.function.columns:
        values = rows.column(name).combine_chunks()
        dtype = query.schema.field(name).type
        lists.append(pa.ListArray.from_arrays(edges, values.cast(dtype)))
    return lists


def call_function(
    query: WindowQuery, by: Evaluator, windows: Sequence[Any], rows: pa.Table, lengths: Ints
) -> Iterator[Piece]:
    """Call a `BatchFunction`; yield its results in pieces.

    Parameters
    ----------
    query : WindowQuery
    by : Evaluator
        Of its function.
    windows : sequence
        The key columns; starts and ends (int64[n]) or None twice.
    rows : pyarrow.Table
        Of all windows.
    lengths : int64[n]
        Number of rows of every window.
    """
    windows = windows if query.has_key else windows[1:]
    fields = query.display_key_fields
    fields += [pa.field(name, pa.int64()) for name in (WINDOW_START, WINDOW_END)]
    none = pa.nulls(len(lengths), pa.int64())
    arrays = [none if part is None else pa.array(part) for part in windows]
    columns = query.function.columns
    seen = pa.schema(query.display_fields(columns))
    batch = WindowBatch(
        pa.table(arrays, schema=pa.schema(fields)),
        rows.select(columns).rename_columns(seen.names).cast(seen),
        offsets(lengths),
    )
    yield from by(batch)


def renumber_arrival(rows: pa.Table) -> pa.Table:
    """Return rows with `ARRIVAL` set to their index, because first and last follow list order."""
    if ARRIVAL not in rows.column_names:
        return rows
    at = rows.schema.get_field_index(ARRIVAL)
    return rows.set_column(at, ARRIVAL, pa.array(np.arange(len(rows))))
