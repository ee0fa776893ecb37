"""A DataFrame of cuDF as the source of a query, and of its results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyarrow import types

from gpu_windows.column_types.logical import logical_schema, logical_table, logical_type
from gpu_windows.column_types.time_units import nanoseconds_error
from gpu_windows.operators.base import Emission
from gpu_windows.operators.columns.device_table import (
    device_tables,
    host_table,
    is_folded_on_device,
    whole_numbers,
)
from gpu_windows.operators.device import is_on_device, rows_per_call
from gpu_windows.planning.plan import Plan, Strategy
from gpu_windows.planning.planner import plan
from gpu_windows.planning.query import Query
from gpu_windows.planning.validation import check_time
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.runners.arrow_source import ArrowOutputs, ArrowSource
from gpu_windows.runners.local import LocalRun, emissions, gather_emissions, input_of
from gpu_windows.runners.outputs import Outputs, Source

#: Microseconds per unit.
_MICROSECONDS = {"s": 1_000_000, "ms": 1_000}


def is_cudf(source: object) -> bool:
    """Whether something is a DataFrame of cuDF, which is not imported for that."""
    kind = type(source)
    return kind.__module__.partition(".")[0] == "cudf" and kind.__name__ == "DataFrame"


class CudfSource(ArrowSource):
    """A DataFrame of cuDF.

    Expressions, unions and joins make Arrow tables of it, on the host, and so are their results.

    Parameters
    ----------
    frame : cudf.DataFrame
        Its index is not a column.
    """

    #: Its rows stay where they are.
    readers = ()

    def __init__(self, frame: Any) -> None:
        super().__init__(frame)
        self.frame = frame

    @cached_property
    def _data(self) -> pa.Table:
        return logical_table(host_table(self.frame))

    @cached_property
    def schema(self) -> pa.Schema:
        """Arrow schema of the columns; those without nulls are not nullable."""
        fields = logical_schema(self._forms)
        nullable = (self.frame[name].null_count > 0 for name in fields.names)
        return pa.schema([f.with_nullable(some) for f, some in zip(fields, nullable, strict=True)])

    @cached_property
    def _forms(self) -> pa.Schema:
        """The columns as they are on the device."""
        return host_table(self.frame.head(0)).schema

    def is_logical(self, column: str) -> bool:
        """Whether a column has the form of its logical type on the device."""
        field: pa.Field = self._forms.field(column)
        return bool(field.type == logical_type(field.type))

    def convert_time(self, column: str, role: str) -> Source:
        """Return this source with times in microseconds; what is finer is refused."""
        check_time(self.schema, column, role)
        dtype = self._forms.field(column).type
        if not types.is_timestamp(dtype) or dtype.unit == "us":
            return self
        numbers = whole_numbers(self.frame[column])
        if dtype.unit == "ns":
            _check_whole(numbers, dtype, column, role)
        ticks = _microseconds(numbers, dtype.unit)
        times = ticks.astype("datetime64[us]")
        if dtype.tz is not None:
            times = times.dt.tz_localize("UTC").dt.tz_convert(dtype.tz)
        return CudfSource(self.frame.assign(**{column: times}))

    def outputs(self, query: Query) -> Outputs:
        """Plan for the local runner."""
        return CudfOutputs(plan(query, bounded=True), self)


def _check_whole(numbers: Any, dtype: pa.DataType, name: str, role: str) -> None:
    """Raise `PrecisionError` if a number of nanoseconds is not a whole number of microseconds."""
    finer = numbers[(numbers % 1_000 != 0).fillna(False)]
    if len(finer):
        raise nanoseconds_error(int(finer.iloc[0]), dtype, name, role)


def _microseconds(numbers: Any, unit: str) -> Any:
    """Return int64 of a unit in microseconds; those that do not fit become the first or last."""
    if unit == "ns":
        return numbers // 1_000
    factor = _MICROSECONDS[unit]
    limit = LONG_MAX // factor
    ticks = numbers.clip(-limit, limit) * factor
    return ticks.where(numbers <= limit, LONG_MAX).where(numbers >= -limit, LONG_MIN)


class CudfOutputs(ArrowOutputs):
    """Outputs of the local runner as DataFrames of cuDF.

    Where kernels of a device fold all there is into slices, the rows are not copied to the host.
    """

    def __init__(self, planned: Plan, source: CudfSource) -> None:
        super().__init__(planned, None)
        self._source = source

    def _evaluate(self) -> LocalRun:
        """Run the query."""
        schema = self._source.schema if self._stays else self._source._data.schema
        return gather_emissions(self.plan, emissions(self.plan, self._batches()), schema)

    def _emissions(self) -> Iterator[Emission]:
        """Run the query and yield its emissions; none is stored."""
        return emissions(self.plan, self._batches(), in_order=False)

    def _batches(self) -> Iterable[Any]:
        """Return the batches for operators: on the device if all that they need can stay there."""
        planned, source = self.plan, self._source
        if not self._stays:
            return input_of(planned, source._data)
        time, rows = planned.query.time, rows_per_call(planned)
        device = planned.query.options.device
        return device_tables(source.frame, source.schema, time, rows, device)

    @property
    def _stays(self) -> bool:
        """Whether the rows stay on the device."""
        planned, query, source = self.plan, self.plan.query, self._source
        if planned.strategy is not Strategy.SLICES or not is_on_device(planned):
            return False
        if not all(map(source.is_logical, planned.input_columns)):
            return False
        schema = source.schema
        is_folded = all(is_folded_on_device(each, schema) for each in planned.partials)
        return query.watermark_column is None and is_folded

    def _as_given(self, table: pa.Table) -> Any:
        """Return a DataFrame of cuDF."""
        return type(self._source.frame).from_arrow(table)
