"""The mixin by which a Python source supports ``availableNow``; Spark has it from 4.2 on."""

from __future__ import annotations

__all__ = ["SupportsTriggerAvailableNow"]

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:  # before 4.2 Spark reads all of every input in one micro-batch

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Stand-in for older versions, which never call it."""
