"""A warning for integers that are taken for microseconds, and look like another unit."""

from __future__ import annotations

import logging

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

logger = logging.getLogger(__name__)

#: Seconds since 1970 from 2001 to 2103.
_SECONDS = 1_000_000_000, 4_200_000_000
#: Units that are longer than a microsecond: how many of them a second has.
_UNITS = {"s": ("seconds", 1), "ms": ("milliseconds", 1_000)}


def warn_of_unit(times: pa.ChunkedArray, name: str) -> None:
    """Log a warning if all integers of an event time look like seconds or milliseconds since 1970.

    As microseconds, which they are, they would all be in the first 70 minutes, or from 12 to 49
    days, of 1970. Nothing is converted.
    """
    if not types.is_int64(times.type):
        return
    bounds = pc.min_max(times).as_py()
    if bounds["min"] is None:
        return
    for unit, (words, per_second) in _UNITS.items():
        least, most = (bound * per_second for bound in _SECONDS)
        if least <= bounds["min"] and bounds["max"] <= most:
            logger.warning(
                "event times that are integers are microseconds, but all of column %r look like %s "
                "since 1970: convert them by cast(pa.timestamp(%r, 'UTC')), or in pandas by "
                "to_datetime(column, unit=%r, utc=True)",
                name,
                words,
                unit,
                unit,
            )
