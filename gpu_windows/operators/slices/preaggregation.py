"""Partial aggregation before a shuffle: of a batch job, and of a stream's rows that are on time.

Flink calls it local aggregation. A million rows in 15 windows cross the shuffle as 250,000 partials
if they have 10,000 keys, as 1,500 if they have 100. Counts of rows travel with partials.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows import rules
from gpu_windows.aggregates.partials import ROWS
from gpu_windows.kernels.backend import Backend
from gpu_windows.operators.columns.numeric import to_numeric
from gpu_windows.operators.columns.partial_columns import table_columns
from gpu_windows.operators.columns.partials import Rows, entries_within
from gpu_windows.operators.counters import Counters, Rejected
from gpu_windows.operators.device import Kernels, Map, gather_batches, is_on_device
from gpu_windows.operators.slices.sessions import new_table
from gpu_windows.operators.slices.table import KeyedRows, SliceTable, grid_of
from gpu_windows.operators.uploads import upload_ahead
from gpu_windows.planning.kinds.window_plan import WindowPlan
from gpu_windows.planning.plan import SLICE, Strategy
from gpu_windows.rules import LONG_MIN, SENTINELS

#: Rows after which a task judges whether its partials shrink the data.
_TRIAL_ROWS = 1 << 19
#: Aggregating, or merging partials, pays off if it leaves at most this share.
_MAX_REST = 0.8
#: Entries that a task buffers before it sends them on, and about how many bytes.
_MAX_ENTRIES, _MAX_BYTES = 1 << 21, 1 << 28

#: Counts travel in "slices" below every real one: UNUSED + status for rows that are in no window.
UNUSED = LONG_MIN
#: Column of the partial `gpu_windows.aggregates.partials.ROWS`.
ROWS_COLUMN = ROWS.name
_STATUSES = rules.REASONS
#: Further counts, of kernel calls.
_CALLS = {13: "cpu_batches", 14: "cuda_batches", 15: "device_fallbacks"}
#: Partials replace rows if they have at most this share of the rows' bytes.
MAX_SHARE = 0.75
#: Metadata of tables of partials; tables of rows, which come the same way, have none.
_MARK = {b"gpu_windows": b"partials"}


class Preaggregation:
    """Aggregates the rows of a task by slice; rows that are in no window are only counted.

    After `_TRIAL_ROWS` rows the task measures what pays off. If partials are hardly fewer than
    rows, it sends every row as a partial of its own. If merging the partials of several batches
    hardly reduces them, as with rows in time order, it sends each batch's partials unmerged.
    Sketches are always aggregated: a sketch of one row is larger than the row.

    Parameters
    ----------
    plan : WindowPlan
    threads : int
        Threads of the CPU kernels.
    """

    def __init__(self, plan: WindowPlan, *, threads: int = 1) -> None:
        self._plan = plan
        self._kernels = Kernels(plan.query.options.device, threads)
        self._table = new_table(plan, self._kernels)
        self._max_entries = min(_MAX_ENTRIES, entries_within(self._table.columns, _MAX_BYTES))
        self._unused = np.zeros(SENTINELS, np.int64)
        self._seen = 0
        self._tried = any(partial.combine.is_sketch for partial in plan.partials)
        self._aggregating = self._merging = True

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        """Yield tables of partials, all of `partial_schema`, for a task's rows."""
        schema = partial_schema(self._plan)
        for table in self._run(batches):
            yield table.cast(schema)

    def _run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        tables: Iterable[Any] = gather_batches(self._plan, batches)
        if is_on_device(self._plan):
            tables = upload_ahead(self._plan, tables, wanted=lambda: self._aggregating)
        for table in tables:
            yield from self._add(table)
        yield from self._flush()
        calls = self._kernels.take_counters()
        for code, name in _CALLS.items():
            self._unused[code] = getattr(calls, name)
        if self._unused.any():
            yield self._counts()

    def _add(self, table: pa.Table) -> Iterator[pa.Table]:
        if not self._aggregating:
            yield from self._lift(table)
            return
        self._seen += self._count(self._table.add_rows(table, LONG_MIN))
        if not self._tried and self._seen >= _TRIAL_ROWS:
            self._try()
        if self._is_full:
            yield from self._flush()

    @property
    def _is_full(self) -> bool:
        """Whether to send the buffered partials on."""
        return not self._aggregating or self._table.entry_count > self._max_entries

    def _try(self) -> None:
        """Decide by the rows so far whether aggregating, and merging partials, pays off."""
        self._tried = True
        buffered = self._table.entry_count
        merged = len(self._table.entries())
        self._aggregating = merged <= _MAX_REST * self._seen
        self._merging = merged <= _MAX_REST * buffered

    def _count(self, rejected: Rejected) -> int:
        """Count the rows that are in no window; return how many are in one."""
        self._unused += np.bincount(rejected.status, minlength=len(self._unused))
        return rejected.seen - len(rejected)

    def _flush(self) -> Iterator[pa.Table]:
        entries = self._table.entries() if self._merging else self._table.unmerged_entries()
        if len(entries):
            yield self._table.to_arrow(entries)
        self._table = new_table(self._plan, self._kernels)

    def _lift(self, table: pa.Table) -> Iterator[pa.Table]:
        for batch in table.to_batches():
            slices, rejected = self._classify(batch)
            if self._count(rejected):
                accepted = rejected.accepted_mask
                yield self._partials_of(batch.filter(pa.array(accepted)), slices[accepted])

    def _classify(self, batch: pa.RecordBatch) -> tuple[NDArray[np.int64], Rejected]:
        none = np.empty(0, np.int64)
        rows = KeyedRows(batch, none, 0, none)

        def work(backend: Backend, _: Map) -> tuple[NDArray[np.int64], Rejected]:
            placed, rejected = self._table.classify(backend, rows, LONG_MIN)
            return backend.to_host(placed.slices), rejected

        return self._kernels.run(len(batch), work)

    def _partials_of(self, batch: pa.RecordBatch, slices: NDArray[np.int64]) -> pa.Table:
        rows = Rows(batch)
        states = [
            column.materialise(column.lift(rows), len(batch)) for column in self._table.columns
        ]
        keys = {name: batch.column(name) for name in self._plan.query.keys}
        return pa.table({**keys, **self._table.columns_without_keys(slices, states)})

    def _counts(self) -> pa.Table:
        schema = partial_schema(self._plan)
        counts = {code: int(self._unused[code]) for code in np.flatnonzero(self._unused).tolist()}
        nulls = [pa.nulls(len(counts), field.type) for field in schema]
        return _carry_counts(pa.table(nulls, schema=schema), counts)


def with_calls(partials: pa.Table, calls: Counters) -> pa.Table:
    """Add counts of kernel calls to a table of partials, for `split_counts`.

    They carry the keys of its first row, so that they reach no shard that has no partials.
    """
    counts = {code: getattr(calls, name) for code, name in _CALLS.items()}
    found = {code: count for code, count in counts.items() if count}
    carriers = partials.take(pa.array(np.zeros(len(found), np.int64)))
    return pa.concat_tables([partials, _carry_counts(carriers, found)])


def _carry_counts(rows: pa.Table, counts: Mapping[int, int]) -> pa.Table:
    """Return rows with a count each, given by code, for `split_counts`."""
    columns = {SLICE: [UNUSED + code for code in counts], ROWS_COLUMN: [*counts.values()]}
    for name, values in columns.items():
        place = rows.schema.get_field_index(name)
        rows = rows.set_column(place, rows.schema.field(place), pa.array(values, pa.int64()))
    return rows


def partial_schema(plan: WindowPlan) -> pa.Schema:
    """Return the Arrow schema of tables of partials."""
    keys = [plan.query.schema.field(name) for name in plan.query.keys]
    fields = [field for column in table_columns(plan) for field in column.fields]
    return pa.schema([*keys, pa.field(SLICE, pa.int64()), *fields])


def split_counts(plan: WindowPlan, partials: pa.Table) -> tuple[pa.Table, Counters]:
    """Separate the counts of rows in no window from a table of partials; count all rows.

    Spark's own aggregation does not drop gaps between windows: they are slices like any other.
    """
    slices = to_numeric(partials.column(SLICE)).values
    rows = to_numeric(partials.column(ROWS_COLUMN)).values
    gaps = np.zeros(len(slices), np.bool_)
    if plan.strategy is Strategy.SLICES:
        gaps = rules.is_gap(slices, grid_of(plan))
    special = slices < UNUSED + SENTINELS
    codes = _STATUSES | _CALLS
    counts = {name: int(rows[slices == UNUSED + code].sum()) for code, name in codes.items()}
    counts["gap"] += int(rows[gaps & ~special].sum())
    counts["rows"] = int(rows.sum()) - sum(counts[name] for name in _CALLS.values())
    in_windows = counts["rows"] - sum(counts[name] for name in _STATUSES.values())
    counters = Counters(**counts, locally_aggregated=in_windows, user=())
    unused = gaps | special
    if unused.any():
        partials = partials.filter(pa.array(~unused))
    return partials, counters


class OnTimePreaggregation:
    """Aggregates the rows of a micro-batch that are on time by slice; the others stay rows.

    A row that is late, or has no usable timestamp, goes to the late output as it came, so it stays
    a row. A row on time for an upper bound of the watermark is on time for any earlier one, so an
    upper bound is safe. Whether partials replace the rows of a batch depends on that batch alone,
    so a micro-batch that is run again is cut in the same way.

    Parameters
    ----------
    plan : WindowPlan
        Of the slices strategy.
    watermark : int
        Upper bound of the operator's watermark when it processes the rows, in ticks.
    threads : int
        Threads of the CPU kernels.
    max_share : float
        Partials replace the rows of a batch if their bytes are at most this share of the rows'.
    """

    def __init__(
        self, plan: WindowPlan, watermark: int, *, threads: int = 1, max_share: float = MAX_SHARE
    ) -> None:
        self._plan = plan
        self._schema = partial_schema(plan).with_metadata(_MARK)
        self._watermark = watermark
        self._max_share = max_share
        self._kernels = Kernels(plan.query.options.device, threads)

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        """Yield tables of partials and tables of rows; `are_partials` tells them apart."""
        for rows in gather_batches(self._plan, batches):
            yield from self.split(rows)

    def split(self, rows: pa.Table) -> Iterator[pa.Table]:
        """Yield partials and the rows that stay rows, or all rows unchanged; nothing for none."""
        if len(rows) == 0:
            return
        table = SliceTable(self._plan, self._kernels)
        rejected = table.add_rows(rows, self._watermark)
        calls = self._kernels.take_counters()
        entries = table.entries()
        partials = table.to_arrow(entries).cast(self._schema)
        if len(entries) == 0 or partials.nbytes > self._max_share * rows.nbytes:
            yield rows
            return
        yield with_calls(partials, calls + self._kernels.take_counters())
        if len(rejected):
            yield rows.take(pa.array(rejected.positions))


def are_partials(table: pa.Table) -> bool:
    """Whether a table from `OnTimePreaggregation.run` holds partials, not rows."""
    return (table.schema.metadata or {}).items() >= _MARK.items()
