"""Checks whether Arrow computes the same values of SQL expressions as Spark in a session."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import types

from gpu_windows.errors import GpuWindowsError
from gpu_windows.runners.row_changes import columns_of_texts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ANSI, _ZONE = "spark.sql.ansi.enabled", "spark.sql.session.timeZone"
#: Names of the zone in which Arrow computes.
_UTC = {"UTC", "Etc/UTC", "GMT", "Z", "+00:00"}


def why_not_alike(session: SparkSession, texts: Iterable[str], schema: pa.Schema) -> str | None:
    """Return why Arrow would compute other values of expressions than Spark, or None.

    Parameters
    ----------
    session : pyspark.sql.SparkSession
    texts : iterable of str
    schema : pyarrow.Schema
        Of their rows.
    """
    if session.conf.get(_ANSI) != "true":
        return f"expressions are computed by Spark where {_ANSI} is false"
    zone = str(session.conf.get(_ZONE))
    if zone not in _UTC and any(_depends_on_zone(text, schema) for text in texts):
        return f"expressions of times are computed by Spark where {_ZONE} is {zone}"
    return None


def _depends_on_zone(text: str, schema: pa.Schema) -> bool:
    """Whether an expression may read or compute times."""
    from sqlglot import exp

    from gpu_windows.expressions.sql_text import parse_expression

    try:
        names = columns_of_texts([text], schema)
        node = parse_expression(text)
    except GpuWindowsError:
        return False  # tasks cannot compute it; that is reported elsewhere
    if any(types.is_temporal(schema.field(name).type) for name in names):
        return True
    return any(node.find(kind) for kind in (exp.Cast, exp.TryCast, exp.Func, exp.Interval))
