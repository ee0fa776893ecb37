"""What a source of Spark's in Python says to end where it is when a query starts: from 4.2 on."""

from __future__ import annotations

__all__ = ["SupportsTriggerAvailableNow"]

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:  # before 4.2 Spark takes all that is there, of every input, in one micro-batch

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """What older versions do not ask for."""
