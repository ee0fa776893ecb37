"""Columns of Spark on which `gpu_windows.rules` are evaluated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from pyspark.sql import Column, SparkSession


@dataclass(frozen=True, eq=False)
class Ticks:
    """A BIGINT column; comparisons give 1 or 0.

    ``//`` and ``%`` round towards minus infinity, as in the rules.
    """

    column: Column

    def __add__(self, other: Any) -> Ticks:
        return Ticks(self.column + _column(other))

    def __sub__(self, other: Any) -> Ticks:
        return Ticks(self.column - _column(other))

    def __radd__(self, other: Any) -> Ticks:
        return Ticks(_column(other) + self.column)

    def __mul__(self, other: Any) -> Ticks:
        return Ticks(self.column * _column(other))

    def __rmul__(self, other: Any) -> Ticks:
        return Ticks(_column(other) * self.column)

    def __floordiv__(self, other: int) -> Ticks:
        multiple = self.column - (self % other).column
        return Ticks(F.call_function("div", multiple, _column(other)))

    def __rshift__(self, bits: int) -> Ticks:
        return Ticks(F.shiftright(self.column, bits))

    def __mod__(self, other: int) -> Ticks:
        return Ticks(F.pmod(self.column, _column(other)))

    def __le__(self, other: Any) -> Ticks:
        return Ticks((self.column <= _column(other)).cast("long"))

    def __gt__(self, other: Any) -> Ticks:
        return Ticks((self.column > _column(other)).cast("long"))


def _column(value: Any) -> Column:
    return value.column if isinstance(value, Ticks) else F.lit(int(value)).cast("long")


@dataclass(frozen=True, eq=False)
class TickTable:
    """An array of ticks, indexed by a number or by a column.

    Parameters
    ----------
    values : int64[n]
    column : pyspark.sql.Column
        The same as ARRAY<BIGINT>.
    """

    values: NDArray[np.int64]
    column: Column

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, Ticks):
            return Ticks(F.get(self.column, index.column.cast("int")))
        return int(self.values[index])


def tables_in_spark(session: SparkSession, *tables: NDArray[np.int64]) -> list[Any]:
    """Return tables of ticks that take `Ticks`.

    They are arrays in subqueries: plans do not show these, and Spark evaluates them once.
    """
    names = [f"t{number}" for number in range(len(tables))]
    frame = session.createDataFrame(pa.table([pa.array([each]) for each in tables], names=names))
    columns = (frame.select(name).scalar() for name in names)
    return [TickTable(*each) for each in zip(tables, columns, strict=True)]
