"""Times without a zone as instants, by the rule of Spark's (and Java's) casts."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from gpu_windows.errors import ColumnTypeError, QueryError


def check_zone(zone: object) -> str:
    """Return the name of a time zone.

    Raises
    ------
    QueryError
        If it is not a time zone.
    """
    if isinstance(zone, str):
        try:
            pc.assume_timezone(pa.array([0], pa.timestamp("us")), zone)
        except pa.ArrowException:
            pass
        else:
            return zone
    rule = "a time zone is one of the IANA database, as 'Europe/Zurich', or an offset, as '+02:00'"
    raise QueryError(rule, value=repr(zone))


def check_local(field: pa.Field) -> None:
    """Raise `ColumnTypeError` unless a column has times without a zone."""
    if not (types.is_timestamp(field.type) and field.type.tz is None):
        rule = "time_zone is for times without a zone, TIMESTAMP_NTZ: leave it out"
        raise ColumnTypeError(rule, value=str(field.type), column=field.name)


def instants_of(times: pa.Array | pa.ChunkedArray, zone: str) -> pa.Array | pa.ChunkedArray:
    """Return the instants at which clocks of a zone show times.

    A time that is shown twice, when clocks go back, is the first of both instants. A time that is
    skipped, when clocks go forward, is later by the length of the gap.

    Parameters
    ----------
    times : pyarrow.Array or pyarrow.ChunkedArray
        Timestamps without a zone.
    zone : str
        See `check_zone`.

    Returns
    -------
    pyarrow.Array or pyarrow.ChunkedArray
        Timestamps of the zone.

    Examples
    --------
    >>> from datetime import datetime
    >>> import pyarrow as pa
    >>> times = [datetime(2024, 3, 31, 2, 30), datetime(2024, 10, 27, 2, 30)]
    >>> found = instants_of(pa.array(times, pa.timestamp("us")), "Europe/Zurich")
    >>> [str(each) for each in found.cast(pa.timestamp("us", "UTC")).to_pylist()]
    ['2024-03-31 01:30:00+00:00', '2024-10-27 00:30:00+00:00']
    """
    before = pc.assume_timezone(times, zone, ambiguous="earliest", nonexistent="earliest")
    after = pc.assume_timezone(times, zone, ambiguous="earliest", nonexistent="latest")
    if before.equals(after):
        return before
    offset = pc.subtract(pc.local_timestamp(before), before.cast(pa.timestamp(times.type.unit)))
    shifted = pc.subtract(times, offset).cast(before.type)
    return pc.if_else(pc.equal(before, after), before, shifted)
