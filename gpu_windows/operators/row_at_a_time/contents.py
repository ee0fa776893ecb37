"""The contents of windows as Arrow values, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyarrow import types

from gpu_windows.operators.keyed.values import stored_type
from gpu_windows.operators.row_at_a_time.accumulators import Filtered
from gpu_windows.operators.row_at_a_time.aggregates import (
    Accumulator,
    ArgExtreme,
    CollectList,
    Count,
    DecimalSum,
    Extreme,
    First,
    Sum,
    Variance,
)
from gpu_windows.operators.row_at_a_time.functions import (
    Accumulators,
    Contents,
    MergingAccumulator,
    Reduced,
    StoredRow,
    StoredRows,
    contents_of,
)
from gpu_windows.operators.row_at_a_time.user_accumulator import UserAccumulator
from gpu_windows.planning.kinds.window import WindowQuery

#: Type of Python's integers in accumulators: no possible number of int64 values overflows it.
_INTEGER = pa.decimal128(38)


@dataclass(frozen=True)
class ContentsFormat:
    """Conversion of a query's window contents to Arrow values and back."""

    query: WindowQuery

    @cached_property
    def fields(self) -> dict[str, pa.DataType]:
        """Name to type of what `entry` returns."""
        match self._empty():
            case StoredRows():
                row = pa.struct(
                    [("row", self._row), ("timestamp", pa.int64()), ("seen", self._seen_type)]
                )
                return {"rows": pa.list_(row)}
            case Reduced():
                return {"row": self._row}
            case Accumulators() as contents:
                return {f"part{i}": self._type_of(p) for i, p in enumerate(_accumulators(contents))}
            case other:
                raise AssertionError(f"unknown contents: {other}")

    def entry(self, contents: Contents) -> dict[str, Any]:
        """Return contents as Python values of `fields`."""
        match contents:
            case StoredRows():
                return {"rows": [element._asdict() for element in contents.rows]}
            case Reduced():
                return {"row": contents.row}
            case Accumulators():
                return {
                    f"part{i}": self._values_of(p) for i, p in enumerate(_accumulators(contents))
                }
            case other:
                raise AssertionError(f"unknown contents: {other}")

    def contents(self, entry: Mapping[str, Any]) -> Contents:
        """Return the contents in an entry."""
        contents = self._empty()
        match contents:
            case StoredRows():
                contents.rows = [StoredRow(**element) for element in entry["rows"]]
            case Reduced():
                contents.row = entry["row"]
            case Accumulators():
                for i, part in enumerate(_accumulators(contents)):
                    self._load(part, entry[f"part{i}"])
        return contents

    def _empty(self) -> Contents:
        return contents_of(self.query)()

    @property
    def _row(self) -> pa.DataType:
        query = self.query
        return self._struct(query.function.read_columns, as_python=query.function.takes_rows)

    @property
    def _seen_type(self) -> pa.DataType:
        return self._struct(self.query.part_columns, as_python=self.query.has_user_parts)

    def _struct(self, names: Sequence[str], *, as_python: bool) -> pa.DataType:
        return pa.struct([(name, self._dtype(name, as_python=as_python)) for name in names])

    def _dtype(self, name: str, *, as_python: bool) -> pa.DataType:
        dtype = self.query.schema.field(name).type
        return dtype if as_python else stored_type(dtype)

    # ---- accumulators

    def _type_of(self, part: Any) -> pa.DataType:
        match part:
            case UserAccumulator():
                return part.function.accumulator
            case MergingAccumulator():
                return pa.list_(self._row)
            case _:
                return pa.struct(list(self._attributes(part).items()))

    def _values_of(self, part: Any) -> Any:
        match part:
            case UserAccumulator():
                return part.value
            case MergingAccumulator():
                return part.rows
            case _:
                values = {name: getattr(part, name) for name in self._attributes(part)}
                dtypes = self._attributes(part)
                return {n: Decimal(v) if dtypes[n] == _INTEGER else v for n, v in values.items()}

    def _load(self, part: Any, value: Any) -> None:
        match part:
            case UserAccumulator():
                part.value = value
            case MergingAccumulator():
                part.rows = value
            case _:
                for name, dtype in self._attributes(part).items():
                    found = value[name]
                    setattr(part, name, int(found) if dtype == _INTEGER else found)

    def _attributes(self, part: Accumulator) -> dict[str, pa.DataType]:
        """Return name and type of the attributes that are the state of a built-in accumulator."""
        count, user = {"count": pa.int64()}, self.query.function.takes_rows
        argument = part.bound.argument_type
        value = argument if user else stored_type(argument)
        match part:
            case Count():
                return count
            case DecimalSum():
                return {**count, "unscaled": _INTEGER}
            case Sum():
                return {**count, "total": pa.float64() if types.is_floating(argument) else _INTEGER}
            case Variance():
                return {**count, **dict.fromkeys(("high", "low", "squares"), pa.float64())}
            case Extreme():
                return {"best": value}
            case First():
                return {"found": pa.bool_(), "value": value}
            case ArgExtreme():
                return {"best": self._dtype(part.by, as_python=user), "value": value}
            case CollectList():
                return {"values": pa.list_(value)}
            case _:
                raise AssertionError(f"unknown accumulator: {part}")


def _accumulators(contents: Accumulators) -> list[Any]:
    """Return the accumulator of each aggregate."""
    parts = contents.parts
    return [part.accumulator if isinstance(part, Filtered) else part for part in parts]
