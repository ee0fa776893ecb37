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
from gpu_windows.operators.row_at_a_time.accumulators import (
    Filtered,
    MergingAccumulator,
    UserAccumulator,
)
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
    Reduced,
    StoredRow,
    StoredRows,
    contents_of,
)
from gpu_windows.planning.kinds.window import WindowQuery

#: The attribute of accumulators whose state is that of one attribute.
_VALUES: Mapping[type, str] = {UserAccumulator: "value", MergingAccumulator: "rows"}
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
        if type(part) in _VALUES:
            return getattr(part, _VALUES[type(part)])
        values = ((n, dtype, getattr(part, n)) for n, dtype in self._attributes(part).items())
        return {n: Decimal(v) if dtype == _INTEGER else v for n, dtype, v in values}

    def _load(self, part: Any, value: Any) -> None:
        if type(part) in _VALUES:
            setattr(part, _VALUES[type(part)], value)
            return
        for name, dtype in self._attributes(part).items():
            setattr(part, name, int(value[name]) if dtype == _INTEGER else value[name])

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
