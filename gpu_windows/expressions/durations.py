"""MAKE_INTERVAL of seconds, as durations."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types
from sqlglot import exp

from gpu_windows.expressions.sql_text import sql_error
from gpu_windows.expressions.values import Value, call


def interval_seconds(node: exp.MakeInterval) -> exp.Expr:
    """Return the seconds of a call.

    Raises
    ------
    SqlError
        If it has other units.
    """
    second = node.args.get("second")
    if second is None or any(e.name != "0" for n, e in node.args.items() if n != "second"):
        raise sql_error(node, "over Arrow tables MAKE_INTERVAL takes seconds alone")
    assert isinstance(second, exp.Expr)
    return second


def to_durations(node: exp.MakeInterval, seconds: Value) -> Value:
    """Return durations of whole seconds.

    Raises
    ------
    SqlError
        If they are not integers.
    """
    if not types.is_integer(seconds.dtype):
        raise sql_error(node, "over Arrow tables MAKE_INTERVAL takes whole seconds")
    ticks = call(pc.multiply_checked, seconds.cast(pa.int64()), pa.scalar(1_000_000))
    return ticks.cast(pa.duration("us"))
