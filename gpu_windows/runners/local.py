"""The local runner: Arrow in, Arrow out, no Spark."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from gpu_windows.aggregates.partials import Combine
from gpu_windows.column_types.time_units import to_microseconds
from gpu_windows.operators.base import Emission
from gpu_windows.operators.build import build_operator
from gpu_windows.operators.counters import Counters
from gpu_windows.operators.device import gather_batches, is_on_device
from gpu_windows.operators.uploads import upload_ahead
from gpu_windows.planning.own_columns import OWN, REASON
from gpu_windows.planning.plan import ARRIVAL, Plan
from gpu_windows.rules import LONG_MAX
from gpu_windows.runners.row_stream import RowStream

#: Batches that a thread is given at once; few enough to be held in memory.
_BATCHES_PER_THREAD = 8


@dataclass(frozen=True)
class LocalRun:
    """Outputs of a query on a bounded input.

    Parameters
    ----------
    results : pyarrow.Table
        Keys, window bounds, results, in order of firing.
    unused : pyarrow.Table
        The input rows that are in no window, and the reason; rows in gaps are only counted.
    counters : Counters
    sides : mapping of str to pyarrow.Table
        Rows of the side outputs, by tag.
    """

    results: pa.Table
    unused: pa.Table
    counters: Counters
    sides: Mapping[str, pa.Table]

    @property
    def late(self) -> pa.Table:
        """The late rows, without the reason."""
        unused = without_own(self.unused)
        return unused.filter(pc.equal(unused.column(REASON), "late")).drop_columns([REASON])

    @property
    def rejected(self) -> pa.Table:
        """The rows without usable values, and the reason."""
        unused = without_own(self.unused)
        return unused.filter(pc.not_equal(unused.column(REASON), "late"))

    @property
    def metrics(self) -> pa.Table:
        """One row of counters, those of user code as a map."""
        counters = self.counters
        counts = pa.Table.from_pylist([{n: getattr(counters, n) for n in counters.names()}])
        user = pa.array([counters.user], pa.map_(pa.string(), pa.int64()))
        return counts.append_column("user", user)


def run(planned: Plan, source: pa.Table | RowStream, *, in_order: bool = True) -> LocalRun:
    """Run a plan over a bounded input: all rows, then the end of time.

    ``in_order``: results in order of firing; else grouped by key, which is cheaper.
    """
    found = emissions(planned, input_of(planned, source), in_order=in_order)
    return gather_emissions(planned, found, source.schema)


def gather_emissions(planned: Plan, found: Iterable[Emission], schema: pa.Schema) -> LocalRun:
    """Return what an operator emitted, with times of the types of the input.

    Parameters
    ----------
    planned : Plan
    found : iterable of Emission
    schema : pyarrow.Schema
        Of the input.
    """
    counters = Counters()
    results, unused = [], []
    sides = {tag: [schema.empty_table()] for tag, schema in planned.query.side_outputs.items()}
    for emission in found:
        counters += emission.counters
        if len(emission.results):
            results.append(emission.results)
        if len(emission.late):
            unused.append(emission.late)
        for tag, rows in emission.sides.items():
            sides[tag].append(rows)
    table = pa.concat_tables(results) if results else planned.result_schema.empty_table()
    return LocalRun(
        with_timestamps(planned, table),
        _unused_rows(planned, unused, schema),
        counters,
        {tag: pa.concat_tables(tables) for tag, tables in sides.items()},
    )


def emissions(
    planned: Plan, batches: Iterable[Any], *, in_order: bool = True
) -> Iterator[Emission]:
    """Yield the emissions of a plan's operator on a bounded input.

    Parameters
    ----------
    planned : Plan
    batches : iterable of pyarrow.Table, UploadedTable or DeviceTable
        See `input_of`.
    in_order : bool
        See `run`.
    """
    threads = planned.query.options.threads or cores()
    operator = build_operator(planned, in_order=in_order, threads=threads)
    alone = threads == 1 or is_on_device(planned)
    count = 1 if alone else max(1, _BATCHES_PER_THREAD * threads // planned.batches_per_call)
    with closing(operator):
        for some in in_batches(batches, count):
            yield from operator.process(some[0] if len(some) == 1 else pa.concat_tables(some))
        yield from operator.advance_watermark(LONG_MAX)


def input_of(planned: Plan, source: pa.Table | RowStream) -> Iterator[Any]:
    """Yield what operators take; the next table is on its way to a device if kernels run there."""
    tables = batches_for(planned, source)
    return upload_ahead(planned, tables) if is_on_device(planned) else tables


def batches_for(planned: Plan, source: pa.Table | RowStream) -> Iterator[pa.Table]:
    """Yield what operators take: event time as int64 ticks, and `ARRIVAL` where it is used."""
    seen = 0
    picks = any(partial.combine is Combine.PICK for partial in planned.partials)
    time, carrier = planned.query.time, planned.query.watermark_column
    marked = () if carrier is None else planned.marker_columns
    for gathered in gather_batches(planned, source):
        table = without_markers(gathered, carrier, marked)
        at = table.schema.get_field_index(time)
        batch = table.set_column(at, time, to_ticks(table.column(at), time))
        if picks:
            arrival = pa.array(np.arange(seen, seen + len(table)))
            batch = batch.append_column(ARRIVAL, arrival)
        seen += len(table)
        yield batch


def without_markers(rows: pa.Table, carrier: str | None, marked: Iterable[str]) -> pa.Table:
    """Return the rows without those that only carry a watermark, and are null in ``marked``."""
    if carrier is None or rows.column(carrier).null_count == len(rows):
        return rows
    has_data = pc.is_null(rows.column(carrier))
    for name in marked:
        has_data = pc.or_(has_data, pc.is_valid(rows.column(name)))
    return rows.filter(has_data)


def without_own(table: pa.Table) -> pa.Table:
    """Return a table without internal columns, which users do not see."""
    return table.drop_columns([name for name in OWN if name in table.column_names])


def in_batches(tables: Iterable[pa.Table], count: int) -> Iterator[list[pa.Table]]:
    """Yield up to ``count`` tables at a time (`itertools.batched` of Python 3.12)."""
    iterator = iter(tables)
    while tables_in_batch := list(islice(iterator, count)):
        yield tables_in_batch


def cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def to_ticks(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Return event times as int64 microseconds; int64 stays as it is."""
    return to_microseconds(column, name, "an event time").cast(pa.int64())


def with_timestamps(planned: Plan, table: pa.Table) -> pa.Table:
    """Return results with window bounds as timestamps, if event times are timestamps."""
    dtype = planned.query.schema.field(planned.query.time).type
    if not types.is_timestamp(dtype):
        return table
    for name in planned.query.window_columns:
        at = table.schema.get_field_index(name)
        nullable = planned.result_schema.field(name).nullable
        field = pa.field(name, pa.timestamp("us", dtype.tz), nullable=nullable)
        table = table.set_column(at, field, table.column(at).cast(field.type))
    return table


def _unused_rows(planned: Plan, tables: list[pa.Table], schema: pa.Schema) -> pa.Table:
    reason = pa.field(REASON, pa.string())
    if not tables:
        return schema.append(reason).empty_table()
    table = pa.concat_tables(tables)
    at = table.schema.get_field_index(planned.query.time)
    field = schema.field(planned.query.time)
    table = table.set_column(at, field, table.column(at).cast(field.type))
    return table.select([i for i, name in enumerate(table.column_names) if name != ARRIVAL])
