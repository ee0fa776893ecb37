"""Arrow rows whose columns are converted to logical types when a query reads them."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import pyarrow as pa
from pyarrow import types

from gpu_windows.column_types.logical import (
    is_logical,
    logical_batches,
    logical_schema,
    logical_table,
)
from gpu_windows.planning.validation import check_time
from gpu_windows.runners.arrow_source import ArrowSource
from gpu_windows.runners.outputs import Source
from gpu_windows.runners.row_stream import RowStream


def source_of_arrow(rows: pa.Table | RowStream) -> Source:
    """Return Arrow rows as a source, whose columns have logical types."""
    return ArrowSource(rows) if is_logical(rows.schema) else PhysicalSource(rows)


class PhysicalSource(ArrowSource):
    """Rows whose columns are converted to logical types when they are read.

    Parameters
    ----------
    rows : pyarrow.Table or RowStream
    clipped : frozenset of str
        Columns of event times, see `gpu_windows.column_types.logical.logical_table`.
    """

    def __init__(self, rows: pa.Table | RowStream, clipped: frozenset[str] = frozenset()) -> None:
        self._rows = rows
        self._clipped = clipped
        self._as_declared = False

    @cached_property
    def _data(self) -> Any:
        rows, clipped = self._rows, self._clipped
        if isinstance(rows, pa.Table):
            return logical_table(rows, clipped)
        schema = logical_schema(rows.schema)
        return rows.map(schema, lambda batch: logical_batches(batch, clipped))

    @cached_property
    def schema(self) -> pa.Schema:
        """Arrow schema of the columns; those of a table without nulls are not nullable."""
        fields = ArrowSource(self._rows).schema
        return logical_schema(
            pa.schema(
                [
                    field.with_nullable(field.nullable or _hides_nulls(field.type))
                    for field in fields
                ]
            )
        )

    @property
    def readers(self) -> tuple[object, ...]:
        """Readers of the rows; a table has none."""
        return ArrowSource(self._rows).readers

    def without_rows(self) -> Source:
        """Return the columns of this source; nothing is read."""
        if isinstance(self._rows, RowStream):
            return super().without_rows()
        return ArrowSource(self.schema.empty_table(), as_declared=True)

    def convert_time(self, column: str, role: str) -> Source:
        """Return this source with times in microseconds; what is finer is refused."""
        check_time(self.schema, column, role)
        physical, logical = self._rows.schema.field(column).type, self.schema.field(column).type
        if physical == logical or not types.is_timestamp(physical):
            return super().convert_time(column, role)
        return PhysicalSource(self._rows, self._clipped | {column})


def _hides_nulls(dtype: pa.DataType) -> bool:
    """Whether an array of a type may have nulls that it does not count: in its entries or runs."""
    is_own = isinstance(dtype, pa.BaseExtensionType)
    return bool(is_own or types.is_dictionary(dtype) or types.is_run_end_encoded(dtype))
