"""Types of the arguments of CPU kernels, described without Numba, which compiling imports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_windows.rules import Grid, Reciprocal, Units


@dataclass(frozen=True)
class Scalar:
    """A number.

    Parameters
    ----------
    dtype : str
        As NumPy calls it.
    """

    dtype: str


@dataclass(frozen=True)
class Array:
    """A contiguous array of one dimension.

    Parameters
    ----------
    dtype : str
        Of its values, as NumPy calls it.
    is_written : bool
        Whether it is an output; an input is read only.
    """

    dtype: str
    is_written: bool = True


@dataclass(frozen=True)
class Record:
    """A named tuple.

    Parameters
    ----------
    kind : type
        Its class.
    parts : tuple
        The types of its fields.
    """

    kind: type
    parts: tuple[Scalar | Array | Record, ...]


Type = Scalar | Array | Record

_LETTERS: dict[str, Type] = {
    "I": Scalar("int64"),
    "F": Scalar("float64"),
    "i": Array("int64"),
    "f": Array("float64"),
    "b": Array("int8"),
}


def record(kind: type, letters: str) -> Record:
    """Return the type of a named tuple.

    ``letters``: i, f and b for arrays of int64, float64 and int8; I and F for scalars.
    """
    return Record(kind, tuple(_LETTERS[letter] for letter in letters))


# ---- what kernels of the CPU take: inputs are read-only, outputs are not

INT = Scalar("int64")
INTS = Array("int64", is_written=False)
FLOATS = Array("float64", is_written=False)
BOOLS = Array("bool", is_written=False)
BYTES = Array("int8", is_written=False)
INTS32 = Array("int32", is_written=False)
TEXT = Array("uint8", is_written=False)
OUT_INTS = Array("int64")
OUT_FLOATS = Array("float64")
OUT_BOOLS = Array("bool")
OUT_BYTES = Array("int8")
OUT_INTS32 = Array("int32")
OUT_TEXT = Array("uint8")
GRID = record(Grid, "I" * len(Grid._fields))
RECIPROCAL = record(Reciprocal, "I" * len(Reciprocal._fields))
UNITS = record(Units, "iiIIiiiIIIII")


def numba_type(described: Type) -> Any:
    """Return Numba's type."""
    from numba import from_dtype, types

    if isinstance(described, Record):
        return types.BaseTuple.from_types(map(numba_type, described.parts), described.kind)
    dtype = from_dtype(np.dtype(described.dtype))
    if isinstance(described, Scalar):
        return dtype
    return types.Array(dtype, 1, "C", readonly=not described.is_written)
