"""Scanned files as the source of a query without Spark."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from typing import Any

import pyarrow as pa

from gpu_windows.column_types.local_times import check_local
from gpu_windows.planning.plan import Plan
from gpu_windows.planning.planner import plan
from gpu_windows.planning.query import Query
from gpu_windows.planning.validation import check_free, check_time, require_column
from gpu_windows.runners.arrow_source import ArrowOutputs, ArrowSource
from gpu_windows.runners.local import cores
from gpu_windows.runners.outputs import Outputs, Source
from gpu_windows.runners.row_changes import (
    AddColumns,
    AddConstant,
    AddLastTicks,
    ConvertLocalTime,
    ConvertTime,
    FilterRows,
    RowChange,
)
from gpu_windows.runners.row_stream import RowStream
from gpu_windows.runners.scanned_rows import ScannedRows
from gpu_windows.scans.splits import Split


class ScanSource(ArrowSource):
    """Rows of files; a query reads the columns that it needs, part by part.

    Parameters
    ----------
    rows : ScannedRows
    """

    def __init__(self, rows: ScannedRows) -> None:
        self._scanned = rows
        super().__init__(self.read(rows.schema.names))

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the columns."""
        return self._scanned.schema

    def read(self, columns: Collection[str]) -> RowStream:
        """Return the rows with some of their columns; they may be read again."""
        schema = pa.schema([field for field in self._scanned.schema if field.name in columns])

        def batches() -> Iterator[pa.RecordBatch]:
            for part in self._scanned.parts:
                for file in part.scan.files:
                    whole = Split(file, 0, file.length)
                    for batch in part.read(whole, schema.names, threads=cores() > 1):
                        yield batch.select(schema.names)

        return RowStream(schema, batches, ())

    def convert_time(self, column: str, role: str) -> Source:
        """Return this source with times in microseconds; what is finer is refused."""
        check_time(self.schema, column, role)
        return self._then(ConvertTime(column, role))

    def convert_local_time(self, column: str, zone: str) -> Source:
        """Return this source with instants, which are shown in the zone."""
        require_column(self.schema, column)
        check_local(self.schema.field(column))
        return self._then(ConvertLocalTime(column, zone, zone))

    def add_constant(self, name: str, value: pa.Scalar) -> Source:
        """Return this source with a column that has one value."""
        return self._then(AddConstant(name, value))

    def filter_rows(self, condition: str) -> Source:
        """Return this source with the rows for which a condition is true."""
        return self._then(FilterRows(condition))

    def add_columns(self, columns: Mapping[str, str]) -> Source:
        """Return this source with more columns."""
        return self._then(AddColumns(dict(columns)))

    def add_last_ticks(self, column: str, name: str) -> Source:
        """Return this source with the last microseconds before the times of a column."""
        check_free(self.schema, name)
        return self._then(AddLastTicks(name, column))

    def _then(self, change: RowChange) -> Source:
        return ScanSource(self._scanned.then(change))

    def outputs(self, query: Query) -> Outputs:
        """Plan for the local runner."""
        return ScanOutputs(plan(query, bounded=True), self)


class ScanOutputs(ArrowOutputs):
    """Outputs over files; only the columns that the query needs are read.

    Parameters
    ----------
    planned : Plan
    source : ScanSource
    """

    def __init__(self, planned: Plan, source: ScanSource) -> None:
        carrier = planned.query.watermark_column
        needed = [*planned.input_columns, *([] if carrier is None else [carrier])]
        super().__init__(planned, source.read(needed))
        self._source = source

    def late(self) -> pa.Table:
        """Return no row: a bounded input is complete before a window closes."""
        return self._source.schema.empty_table()

    def rejected(self) -> pa.Table:
        """Return the rows without a usable timestamp, and the reason; files are read again."""
        return self._whole.rejected()

    @cached_property
    def _whole(self) -> ArrowOutputs:
        """The outputs over rows with all columns; over no rows if none is rejected."""
        is_needed = len(self._run.unused) > 0
        rows: Any = self._source.read(self._source.schema.names)
        return ArrowOutputs(self.plan, rows if is_needed else rows.without_rows())
