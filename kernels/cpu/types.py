"""Numba types of kernel arguments: inputs are read-only, outputs are not; all contiguous."""

from __future__ import annotations

from numba import types

from gpu_windows.rules import Grid, Reciprocal

INT = types.int64
INTS = types.Array(types.int64, 1, "C", readonly=True)
FLOATS = types.Array(types.float64, 1, "C", readonly=True)
BOOLS = types.Array(types.bool_, 1, "C", readonly=True)
BYTES = types.Array(types.int8, 1, "C", readonly=True)
CELLS = types.Array(types.int32, 1, "C", readonly=True)
TEXT = types.Array(types.uint8, 1, "C", readonly=True)
OUT_INTS = types.int64[::1]
OUT_FLOATS = types.float64[::1]
OUT_BOOLS = types.bool_[::1]
OUT_BYTES = types.int8[::1]
OUT_CELLS = types.int32[::1]
OUT_TEXT = types.uint8[::1]
GRID = types.NamedUniTuple(types.int64, len(Grid._fields), Grid)
RECIPROCAL = types.NamedUniTuple(types.int64, len(Reciprocal._fields), Reciprocal)
