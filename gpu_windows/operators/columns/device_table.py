"""Tables on a device: DataFrames of cuDF, and tables of Arrow of which some columns were copied.

Numeric columns of cuDF are used in device memory; those without nulls are not copied. Only public
methods of cuDF are called, and it is not imported.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import types

from gpu_windows.aggregates.partials import Combine, Lift, Partial
from gpu_windows.kernels.backend import Backend, select
from gpu_windows.operators.columns.numeric import ALL, TypedNumericColumn
from gpu_windows.vocabulary.options import Device

#: How partials are combined, and what they take of a row, that are made of lanes.
_FOLDED = (Combine.ADD, Combine.MIN, Combine.MAX, Combine.MOMENTS)
_LIFTED = (Lift.ONE, Lift.VALUE, Lift.HIGH, Lift.LOW)


def is_numeric(dtype: pa.DataType) -> bool:
    """Whether columns of a type stay on the device: numbers, booleans, timestamps."""
    whole = types.is_integer(dtype) and not types.is_uint64(dtype)
    return whole or types.is_floating(dtype) or types.is_boolean(dtype) or types.is_timestamp(dtype)


def is_folded_on_device(partial: Partial, schema: pa.Schema) -> bool:
    """Whether kernels can compute a partial from a column on the device, and nothing else."""
    if partial.combine not in _FOLDED or partial.lift not in _LIFTED or partial.where:
        return False
    return partial.column is None or is_numeric(schema.field(partial.column).type)


def device_tables(
    frame: Any, schema: pa.Schema, time: str, rows: int, device: Device
) -> Iterator[DeviceTable]:
    """Yield a frame as tables of up to ``rows`` rows."""
    backend = select(device)
    for begin in range(0, len(frame), rows):
        yield DeviceTable(frame.iloc[begin : begin + rows], schema, time, backend)


@dataclass(frozen=True)
class DeviceTable:
    """A DataFrame of cuDF with the methods of an Arrow table that operators call.

    Parameters
    ----------
    frame : cudf.DataFrame
    schema : pyarrow.Schema
        Of its columns.
    time : str
        The column of event time, in microseconds; `column` returns it as int64 ticks.
    backend : Backend
        Where the columns are.
    """

    frame: Any
    schema: pa.Schema
    time: str
    backend: Backend

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return len(self)

    @cached_property
    def _columns(self) -> dict[str, TypedNumericColumn | pa.Array]:
        return {}

    def column(self, name: str) -> TypedNumericColumn | pa.Array:
        """Return a column on the device if it is numeric; else as an Arrow array on the host.

        Floats with nulls also go to the host: no public method of cuDF tells NaN from null.
        """
        if name not in self._columns:
            dtype, series = self.schema.field(name).type, self.frame[name]
            apart = types.is_floating(dtype) and series.null_count > 0
            if is_numeric(dtype) and not apart:
                self._columns[name] = self._to_numeric(
                    series, pa.int64() if name == self.time else dtype
                )
            else:
                self._columns[name] = series.to_arrow().cast(dtype)
        return self._columns[name]

    def _to_numeric(self, series: Any, dtype: pa.DataType) -> TypedNumericColumn:
        numbers = (
            whole_numbers(series) if not types.is_floating(dtype) else series.astype("float64")
        )
        valid: NDArray[np.bool_] = ALL
        if series.null_count > 0:
            valid = self.backend.borrow(series.notnull().values)
            numbers = numbers.fillna(0)
        return TypedNumericColumn(self.backend.borrow(numbers.values), valid, dtype)

    def to_batches(self) -> Iterator[Self]:
        """Yield the table as one batch."""
        return iter([self])

    def slice(self, begin: int, length: int | None = None) -> Self:
        """Return some rows, on the device."""
        end = len(self) if length is None else begin + length
        return self._of(self.frame.iloc[begin:end])

    def filter(self, some: pa.BooleanArray) -> Self:
        """Return the rows of a mask, on the device."""
        return self._of(self.frame.take(np.flatnonzero(some.to_numpy(zero_copy_only=False))))

    def _of(self, frame: Any) -> Self:
        return type(self)(frame, self.schema, self.time, self.backend)

    def append_column(self, name: str, values: pa.Array) -> pa.Table:
        """Return the rows with one more column, as an Arrow table on the host."""
        return host_table(self.frame, self.schema).append_column(name, values)


def whole_numbers(series: Any) -> Any:
    """Return a column of whole numbers, booleans or timestamps as int64; null stays null."""
    instants = series.dt.tz_convert(None) if getattr(series.dtype, "tz", None) else series
    return instants.astype("int64")


def host_table(frame: Any, schema: pa.Schema | None = None) -> pa.Table:
    """Copy a DataFrame of cuDF to the host, without its index."""
    table = frame.to_arrow(preserve_index=False).replace_schema_metadata(None)
    return table if schema is None else table.cast(schema)


@dataclass(frozen=True)
class UploadedTable:
    """A table with the methods that operators call; kernels take `kernel_column`.

    Parameters
    ----------
    table : pyarrow.Table
    uploaded : dict of str to TypedNumericColumn
        Columns by name, as `Backend.upload` returns them.
    """

    table: pa.Table
    uploaded: dict[str, TypedNumericColumn]

    def __len__(self) -> int:
        return len(self.table)

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return len(self)

    def column(self, name: str) -> pa.ChunkedArray:
        """Return a column of the host."""
        return self.table.column(name)

    def to_batches(self) -> list[pa.RecordBatch]:
        """Return the rows as batches of the host."""
        return self.table.to_batches()  # type: ignore[no-any-return]

    def slice(self, begin: int, length: int | None = None) -> pa.Table:
        """Return some rows, on the host: they are asked for when the device has no room."""
        return self.table.slice(begin, length)

    def filter(self, some: pa.BooleanArray) -> pa.Table:
        """Return the rows of a mask, on the host."""
        return self.table.filter(some)


def kernel_column(table: Any, name: str) -> Any:
    """Return a column of a table of any kind for kernels: the device's if that has it."""
    if isinstance(table, UploadedTable) and name in table.uploaded:
        return table.uploaded[name]
    return table.column(name)
