"""Fields of log records: of which query, micro-batch, target and shard they are."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from gpu_windows.errors import QueryError

#: Fields of every record, which are empty where they are unknown.
FIELDS = ("query", "target", "micro_batch", "shard")
#: The variable with the least level that workers log.
LEVEL = "GPU_WINDOWS_LOG_LEVEL"
_FORMAT = (
    "%(asctime)s %(levelname)s %(name)s query=%(query)s target=%(target)s "
    "micro_batch=%(micro_batch)s shard=%(shard)s: %(message)s"
)
_PACKAGE = "gpu_windows"
_fields: ContextVar[Mapping[str, object] | None] = ContextVar(
    "gpu_windows_log_fields", default=None
)


class LogFields(logging.Filter):
    """Adds ``query``, ``target``, ``micro_batch`` and ``shard`` to log records; drops none.

    Give it to the handlers of your logging, and use the fields in their format. What is logged
    outside a micro-batch, or by other packages, has empty ones, unless it has fields of these
    names.

    Examples
    --------
    >>> import logging
    >>> from gpu_windows.monitoring.logs import LogFields
    >>> handler = logging.StreamHandler()
    >>> handler.addFilter(LogFields())
    >>> handler.setFormatter(logging.Formatter("%(levelname)s %(query)s %(shard)s %(message)s"))
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the fields to a record."""
        current = current_fields()
        for name in FIELDS:
            if not hasattr(record, name):
                setattr(record, name, current.get(name, ""))
        return True


def current_fields() -> Mapping[str, object]:
    """Return the fields of what is logged now, by this thread."""
    return _fields.get() or {}


@contextmanager
def log_fields(**fields: object) -> Iterator[None]:
    """Add fields to what is logged in a block."""
    token = _fields.set({**current_fields(), **fields})
    try:
        yield
    finally:
        _fields.reset(token)


def log_to_stderr() -> None:
    """Make a Python worker log with fields to its standard error, which is Spark's log of it.

    Does nothing if the process has handlers for the package, those of the root included.

    Raises
    ------
    QueryError
        If the variable with the level has none.
    """
    logger = logging.getLogger(_PACKAGE)
    if logger.hasHandlers():
        return
    level = os.environ.get(LEVEL, "WARNING").upper()
    if level not in logging.getLevelNamesMapping():
        raise QueryError(f"{LEVEL} is a level of Python's logging, such as INFO", value=level)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(_FORMAT))
    handler.addFilter(LogFields())
    logger.addHandler(handler)
    logger.setLevel(level)
