"""Types of values in conditions: they decide how values are compared and computed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import pyarrow as pa
from pyarrow import types

from gpu_windows.column_types.logical import is_comparable


class TypeClass(Enum):
    """Classes of types; conditions represent all but `FLOAT` as integers."""

    INTEGER = "an integer"
    FLOAT = "a floating-point number"
    BOOLEAN = "true or false"
    TIMESTAMP = "a time"
    DURATION = "a duration"
    RANKED = "a value that is compared"
    NULL = "NULL"


@dataclass(frozen=True)
class ValueType:
    """The type of a value.

    Parameters
    ----------
    type_class : TypeClass
    bits : int
        Of an integer, or a floating-point number.
    name : str
        The SQL type, where only values of the same type can be compared.
    """

    type_class: TypeClass
    bits: int = 64
    name: str = ""

    @property
    def is_float(self) -> bool:
        """Whether conditions represent it as a float."""
        return self.type_class is TypeClass.FLOAT

    @property
    def is_number(self) -> bool:
        """Whether arithmetic takes it."""
        return self.type_class in (TypeClass.INTEGER, TypeClass.FLOAT)

    def describe(self) -> str:
        """Return a description for error messages."""
        return self.name or self.type_class.value


BOOLEAN, NULL = ValueType(TypeClass.BOOLEAN), ValueType(TypeClass.NULL)
DOUBLE, LONG, DURATION = (
    ValueType(TypeClass.FLOAT),
    ValueType(TypeClass.INTEGER),
    ValueType(TypeClass.DURATION),
)


def value_type(dtype: pa.DataType) -> ValueType | None:
    """Return the value type of an Arrow type; None if its values cannot be compared."""
    if types.is_null(dtype):
        return NULL
    if types.is_boolean(dtype):
        return BOOLEAN
    if types.is_integer(dtype):
        return ValueType(TypeClass.INTEGER, dtype.bit_width)
    if types.is_floating(dtype):
        return ValueType(TypeClass.FLOAT, dtype.bit_width)
    if types.is_timestamp(dtype):
        zoned = "TIMESTAMP" if dtype.tz is not None else "TIMESTAMP_NTZ"
        return ValueType(TypeClass.TIMESTAMP, name=zoned)
    if types.is_duration(dtype):
        return DURATION
    text = types.is_string(dtype) or types.is_large_string(dtype)
    if text or is_comparable(dtype):
        return ValueType(TypeClass.RANKED, name="STRING" if text else str(dtype))
    return None


def wider_type(one: ValueType, other: ValueType) -> ValueType:
    """Return the wider of two types."""
    return other if one == NULL or one.bits < other.bits else one
