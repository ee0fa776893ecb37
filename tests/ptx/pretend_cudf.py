"""DataFrames of a cuDF that is none: over Arrow on the host, as far as our code calls them.

What leaves the pretended device is counted, by rows.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tests.ptx.arrays import DeviceArray

#: Rows of every call that copied some to the host.
copied: list[int] = []


class Series:
    """A column."""

    def __init__(self, array: pa.Array) -> None:
        self._array = array
        self.dt = SimpleNamespace(tz_convert=self._converted, tz_localize=self._localized)

    @property
    def dtype(self) -> Any:
        """NumPy's, or pandas', which has a time zone."""
        return SimpleNamespace(tz=getattr(self._array.type, "tz", None))

    @property
    def null_count(self) -> int:
        """How many are null."""
        return int(self._array.null_count)

    @property
    def values(self) -> DeviceArray:
        """An array of CuPy's; of numbers and booleans without nulls."""
        kind = self._array.type
        if self.null_count or not (pa.types.is_boolean(kind) or pa.types.is_primitive(kind)):
            raise TypeError(f"no array of CuPy's for {kind} with {self.null_count} nulls")
        if pa.types.is_temporal(kind):
            raise TypeError("CuPy has no datetime64")
        return DeviceArray(self._array.to_numpy(zero_copy_only=False))

    def astype(self, kind: str) -> Series:
        """Return the values as another type; instants have a time zone in another."""
        if kind == "datetime64[us]":
            return Series(self._array.cast(pa.timestamp("us")))
        dtype = {"int64": pa.int64(), "float64": pa.float64()}[kind]
        if pa.types.is_timestamp(self._array.type) and self._array.type.tz:
            raise TypeError("cuDF converts no time zones to numbers")
        return Series(self._array.cast(dtype, safe=False))

    def fillna(self, value: Any) -> Series:
        """Return the values with another for null."""
        return Series(pc.fill_null(self._array, value))

    def notnull(self) -> Series:
        """Return which are not null; NaN counts as null, as in cuDF."""
        return Series(pc.invert(pc.is_null(self._array, nan_is_null=True)))

    def clip(self, low: int, high: int) -> Series:
        """Return the values within bounds."""
        return Series(pc.min_element_wise(pc.max_element_wise(self._array, low), high))

    def where(self, some: Series, other: int) -> Series:
        """Return another value where it is not true."""
        chosen = pc.if_else(pc.fill_null(some._array, True), self._array, other)
        return Series(chosen)

    def __floordiv__(self, divisor: int) -> Series:
        return self._by(lambda values: values // divisor)

    def __mod__(self, divisor: int) -> Series:
        return self._by(lambda values: values % divisor)

    def __ne__(self, other: object) -> Series:  # type: ignore[override]
        return Series(pc.not_equal(self._array, other))

    def __getitem__(self, some: Series) -> Series:
        if some.null_count:
            raise ValueError("a mask of cuDF has no nulls")
        return Series(self._array.filter(some._array))

    def __len__(self) -> int:
        return len(self._array)

    @property
    def iloc(self) -> list[Any]:
        """Values by place."""
        values: list[Any] = self._array.to_pylist()
        return values

    def __mul__(self, factor: int) -> Series:
        return self._by(lambda values: values * factor)

    def __le__(self, other: int) -> Series:
        return Series(pc.less_equal(self._array, other))

    def __ge__(self, other: int) -> Series:
        return Series(pc.greater_equal(self._array, other))

    def _by(self, function: Callable[[Any], Any]) -> Series:
        values = function(pc.fill_null(self._array, 0).to_numpy())
        return Series(pa.array(values, mask=pc.is_null(self._array).to_numpy(zero_copy_only=False)))

    def _converted(self, tz: str | None) -> Series:
        if self._array.type.tz is None:
            raise TypeError("Cannot convert tz-naive timestamps, use tz_localize to localize")
        return Series(self._array.cast(pa.timestamp(self._array.type.unit, tz)))

    def _localized(self, tz: str) -> Series:
        return Series(self._array.cast(pa.timestamp(self._array.type.unit, tz)))

    def to_arrow(self) -> pa.Array:
        """Copy to the host."""
        copied.append(len(self._array))
        return self._array


class DataFrame:
    """A table; what `gpu_windows.stream` takes for one of cuDF's."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table.combine_chunks()
        self.iloc = _Rows(self)

    @classmethod
    def from_arrow(cls, table: pa.Table) -> Self:
        """Copy from the host."""
        return cls(table)

    def to_arrow(self, *, preserve_index: bool | None = None) -> pa.Table:
        """Copy to the host."""
        assert preserve_index is False
        copied.append(len(self))
        return self._table

    def __len__(self) -> int:
        return len(self._table)

    def __getitem__(self, name: str) -> Series:
        column = self._table.column(name)
        return Series(column.combine_chunks())

    def head(self, count: int) -> DataFrame:
        """Return the first rows."""
        return DataFrame(self._table.slice(0, count))

    def take(self, places: np.ndarray[Any, Any]) -> DataFrame:
        """Return some rows."""
        return DataFrame(self._table.take(pa.array(places)))

    def assign(self, **columns: Series) -> DataFrame:
        """Return the rows with other columns."""
        table = self._table
        for name, series in columns.items():
            table = table.set_column(table.schema.get_field_index(name), name, series._array)
        return DataFrame(table)


class _Rows:
    def __init__(self, frame: DataFrame) -> None:
        self._frame = frame

    def __getitem__(self, rows: slice) -> DataFrame:
        begin, end, _ = rows.indices(len(self._frame))
        return DataFrame(self._frame._table.slice(begin, end - begin))


DataFrame.__module__ = "cudf.core.dataframe"
