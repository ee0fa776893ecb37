"""Numba types of kernel arguments: all arrays are contiguous."""

from __future__ import annotations

from numba import types

from gpu_windows.rules import Grid, Reciprocal, Units

INT = types.int64
FLOAT = types.float64
INTS = types.int64[::1]
FLOATS = types.float64[::1]
BOOLS = types.bool_[::1]
BYTES = types.int8[::1]
INTS16 = types.int16[::1]
INTS32 = types.int32[::1]
GRID = types.NamedUniTuple(types.int64, len(Grid._fields), Grid)
RECIPROCAL = types.NamedUniTuple(types.int64, len(Reciprocal._fields), Reciprocal)
UNITS = types.NamedTuple([INTS, INTS, INT, INT, INTS, INTS, INTS, *[INT] * 5], Units)
