"""Types of kernel arguments, described without Numba, which compiling imports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


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


def numba_type(described: Type) -> Any:
    """Return Numba's type."""
    from numba import from_dtype, types

    if isinstance(described, Record):
        return types.BaseTuple.from_types(map(numba_type, described.parts), described.kind)
    dtype = from_dtype(np.dtype(described.dtype))
    if isinstance(described, Scalar):
        return dtype
    return types.Array(dtype, 1, "C", readonly=not described.is_written)
