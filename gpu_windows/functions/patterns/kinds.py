"""What values of conditions are: how they are compared, and what is computed with them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import pyarrow as pa
from pyarrow import types

from gpu_windows.aggregates.argument_types import is_comparable


class Meaning(Enum):
    """What a value means; all but `FLOAT` are integers where conditions are evaluated."""

    WHOLE = "a whole number"
    FLOAT = "a floating-point number"
    FLAG = "true or false"
    TIME = "a time"
    DURATION = "a duration"
    RANKED = "a value that is compared"
    NOTHING = "NULL"


@dataclass(frozen=True)
class Kind:
    """What a value is.

    Parameters
    ----------
    meaning : Meaning
    bits : int
        Of a whole number, or a floating-point one.
    of : str
        Its type, where only values of the same type go together.
    """

    meaning: Meaning
    bits: int = 64
    of: str = ""

    @property
    def is_float(self) -> bool:
        """Whether it is a float where conditions are evaluated."""
        return self.meaning is Meaning.FLOAT

    @property
    def is_number(self) -> bool:
        """Whether it is computed with."""
        return self.meaning in (Meaning.WHOLE, Meaning.FLOAT)

    def describe(self) -> str:
        """Return it in words."""
        return self.of or self.meaning.value


FLAG, NOTHING = Kind(Meaning.FLAG), Kind(Meaning.NOTHING)
DOUBLE, LONG, DURATION = Kind(Meaning.FLOAT), Kind(Meaning.WHOLE), Kind(Meaning.DURATION)


def kind_of(dtype: pa.DataType) -> Kind | None:
    """Return what values of a type are; None if they cannot be compared."""
    if types.is_null(dtype):
        return NOTHING
    if types.is_boolean(dtype):
        return FLAG
    if types.is_integer(dtype):
        return Kind(Meaning.WHOLE, dtype.bit_width)
    if types.is_floating(dtype):
        return Kind(Meaning.FLOAT, dtype.bit_width)
    if types.is_timestamp(dtype):
        zoned = "TIMESTAMP" if dtype.tz is not None else "TIMESTAMP_NTZ"
        return Kind(Meaning.TIME, of=zoned)
    if types.is_duration(dtype):
        return DURATION
    text = types.is_string(dtype) or types.is_large_string(dtype)
    if text or is_comparable(dtype):
        return Kind(Meaning.RANKED, of="STRING" if text else str(dtype))
    return None


def wider(one: Kind, other: Kind) -> Kind:
    """Return the kind of what is one of two values."""
    return other if one == NOTHING or one.bits < other.bits else one
