"""Types of kernel arguments: inputs are read-only, outputs are not; all arrays are contiguous."""

from __future__ import annotations

from gpu_windows.kernels.argument_types import Array, Scalar, record
from gpu_windows.rules import Grid, Reciprocal, Units

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
