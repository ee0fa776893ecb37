"""``RAISE_ERROR``: an error for rows that have a message."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from gpu_windows.errors import ExpressionError
from gpu_windows.expressions.functions.call import ArrowFunction, Call


def _raise_error(call: Call) -> pa.Array:
    """Raise the first message; rows whose message is null have none, which Spark does not allow."""
    messages = call.arrays[0].drop_null()
    if len(messages):
        raise ExpressionError(str(messages[0]))
    return pa.nulls(len(call.arrays[0]))


#: The function by Spark's name.
FAILURES: Mapping[str, ArrowFunction] = {"RAISE_ERROR": ArrowFunction(("text",), _raise_error)}
