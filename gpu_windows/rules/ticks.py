"""Times as int64 ticks."""

from __future__ import annotations

from typing import Any

#: A scalar, or what behaves like one: an array, an SQL expression.
Tick = Any

LONG_MIN = -(2**63)
LONG_MAX = 2**63 - 1

#: Numbers at the low end of int64 that no slice has; they mark what is not a slice.
SENTINELS = 16
