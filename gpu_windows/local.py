"""The local runner: Arrow in, Arrow out, no Spark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from gpu_windows.aggregates import Combine
from gpu_windows.operators.base import REASON, Counters, Emission
from gpu_windows.operators.batches import gather
from gpu_windows.operators.build import build_operator
from gpu_windows.plan import ARRIVAL, Plan
from gpu_windows.query import WINDOW_END, WINDOW_START
from gpu_windows.rules import LONG_MAX

#: Rows of a slice of a table that is handed to an operator at once.
_SLICE_ROWS = 1 << 20


@dataclass(frozen=True)
class LocalRun:
    """What a query gave on a bounded input.

    Parameters
    ----------
    results : pyarrow.Table
        Keys, window bounds, results, in order of firing.
    unused : pyarrow.Table
        The input rows that are in no window, and the reason; rows in gaps are only counted.
    counters : Counters
    """

    results: pa.Table
    unused: pa.Table
    counters: Counters


def run(plan: Plan, source: pa.Table | pa.RecordBatchReader) -> LocalRun:
    """Run a plan over a bounded input: all rows, then the end of time."""
    operator = build_operator(plan)
    counters = Counters()
    results, unused = [], []

    def take(emissions: Iterator[Emission]) -> None:
        nonlocal counters
        for emission in emissions:
            counters += emission.counters
            if len(emission.results):
                results.append(emission.results)
            if len(emission.late):
                unused.append(emission.late)

    for batch in batches_for(plan, source):
        take(operator.process(batch))
    take(operator.advance_watermark(LONG_MAX))
    table = pa.concat_tables(results) if results else plan.result_schema.empty_table()
    return LocalRun(
        _with_timestamps(plan, table), _unused(plan, unused, source.schema), counters
    )


def batches_for(plan: Plan, source: pa.Table | pa.RecordBatchReader) -> Iterator[pa.Table]:
    """Yield what operators take: event time as int64 ticks, and `ARRIVAL` where it is used."""
    seen = 0
    picks = any(partial.combine is Combine.PICK for partial in plan.partials)
    chunks = source.to_batches(max_chunksize=_SLICE_ROWS) if isinstance(source, pa.Table) else source
    for table in gather(chunks, plan.query.options.batch_rows):
        at = table.schema.get_field_index(plan.query.time)
        batch = table.set_column(at, plan.query.time, to_ticks(table.column(at)))
        if picks:
            arrival = pa.array(np.arange(seen, seen + len(table)))
            batch = batch.append_column(ARRIVAL, arrival)
        seen += len(table)
        yield batch


def to_ticks(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return event times as int64 microseconds; int64 stays as it is."""
    if types.is_timestamp(column.type):
        return column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    return column


def _with_timestamps(plan: Plan, table: pa.Table) -> pa.Table:
    kind = plan.query.schema.field(plan.query.time).type
    if not types.is_timestamp(kind):
        return table
    for name in (WINDOW_START, WINDOW_END):
        at = table.schema.get_field_index(name)
        field = pa.field(name, pa.timestamp("us", kind.tz), nullable=False)
        table = table.set_column(at, field, table.column(at).cast(field.type))
    return table


def _unused(plan: Plan, tables: list[pa.Table], schema: pa.Schema) -> pa.Table:
    reason = pa.field(REASON, pa.string())
    if not tables:
        return schema.append(reason).empty_table()
    table = pa.concat_tables(tables)
    ticks = table.column(plan.query.time)
    kind = schema.field(plan.query.time).type
    if types.is_timestamp(kind):
        unit = pa.timestamp("us", kind.tz)
        ticks = pc.cast(ticks, unit).cast(kind, safe=False)
    at = table.schema.get_field_index(plan.query.time)
    return table.set_column(at, schema.field(plan.query.time), ticks).select(
        [*schema.names, REASON]
    )
