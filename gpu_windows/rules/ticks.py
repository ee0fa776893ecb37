"""Times as int64 ticks, the one unit inside; those of Spark and Arrow are microseconds.

A window is ``[start, end)``, and its ``max_timestamp`` is ``end - 1``. A watermark w says that no
row with ``ts <= w`` comes any more. A bounded input ends with the watermark `LONG_MAX`, so none of
its rows is late.
"""

from __future__ import annotations

from typing import Any

#: A scalar, or what behaves like one: an array, an SQL expression.
Tick = Any

LONG_MIN = -(2**63)
LONG_MAX = 2**63 - 1

#: Numbers at the low end of int64 that no slice has; they mark what is not a slice.
SENTINELS = 16
