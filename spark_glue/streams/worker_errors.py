"""Errors of this package that workers raised, as the first lines of what ends a query.

Spark reports a failed micro-batch as the text of the exception and of its causes, causes first. A
cause without a traceback is its message alone: so the first lines are those that say what failed.
"""

from __future__ import annotations

import re

from pyspark.errors import PySparkException

from gpu_windows import errors
from gpu_windows.errors import GpuWindowsError

_RAISED = re.compile(rf"^{re.escape(errors.__name__)}\.(\w+): ", re.MULTILINE)
#: Where the message ends: the JVM's part of the text.
_JVM = re.compile(r"\n\s*(?:at [\w.$]+\(|SQLSTATE: |JVM stacktrace)|\n\n")


def find_worker_error(error: BaseException) -> GpuWindowsError | None:
    """Return the error of this package that a worker raised, without a traceback, or None.

    Parameters
    ----------
    error : BaseException
        What Spark raised on the driver.
    """
    if not isinstance(error, PySparkException):
        return None
    text = str(error)
    found = _RAISED.search(text)
    kind = None if found is None else getattr(errors, found[1], None)
    if found is None or not (isinstance(kind, type) and issubclass(kind, GpuWindowsError)):
        return None
    raised = kind.__new__(kind)
    raised.rule, raised.value, raised.column = (
        _JVM.split(text[found.end() :])[0].rstrip(),
        None,
        None,
    )
    raised.args = (raised.rule,)
    return raised
