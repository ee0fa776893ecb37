"""Uses of columns and the types that each allows: the data of ``docs/types.md``.

Tests check every cell in the local runner, Spark and shards of streams.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from gpu_windows.column_types.logical import LOGICAL, remedy_of

#: Other Arrow types, which are read as their logical types.
FORMS: tuple[pa.DataType, ...] = (
    pa.large_string(),
    pa.string_view(),
    pa.dictionary(pa.int32(), pa.string()),
    pa.run_end_encoded(pa.int32(), pa.string()),
    pa.large_binary(),
    pa.binary_view(),
    pa.binary(2),
    pa.uint8(),
    pa.uint16(),
    pa.uint32(),
    pa.uint64(),
    pa.float16(),
    pa.decimal32(9, 2),
    pa.decimal64(18, 2),
    pa.date64(),
    pa.time32("ms"),
    pa.timestamp("s", "UTC"),
    pa.timestamp("ms", "Europe/Zurich"),
    pa.timestamp("us", "Europe/Zurich"),
    pa.large_list(pa.int32()),
    pa.list_view(pa.int32()),
    pa.list_(pa.uint16(), 2),
)
#: Types that Spark does not have: they are in Arrow tables and files only.
NOT_IN_SPARK = frozenset({"TIMESTAMP of ns", "TIME"})

_WHOLE = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_PLAIN = (*_WHOLE, "FLOAT", "DOUBLE")
_LANES = (*_PLAIN, "DECIMAL(18, 2)")
_NUMBERS = (*_LANES, "DECIMAL(20, 0)")
_TIMES = ("DATE", "TIMESTAMP", "TIMESTAMP of ns", "TIMESTAMP_NTZ")
_SIMPLE = (*_NUMBERS, "BOOLEAN", *_TIMES, "STRING", "BINARY")
_NUMBER, _ORDER, _SINGLE = map(remedy_of, ("sum", "by", "key"))


@dataclass(frozen=True)
class Use:
    """A use of a column.

    Parameters
    ----------
    title : str
        In words, or as it is called.
    takes : tuple of str
        The logical types that it takes, by their names.
    gives : str
        The type of the result, and how exact it is.
    remedy : str
        What to do with columns of other types.
    """

    title: str
    takes: tuple[str, ...]
    gives: str
    remedy: str = ""


#: Uses by their names.
USES: Mapping[str, Use] = {
    "key": Use("a key, of windows and of joins", (*_SIMPLE, "STRUCT<x INT>"), "its type", _SINGLE),
    "event_time": Use(
        "event time",
        ("TIMESTAMP", "TIMESTAMP of ns", "TIMESTAMP_NTZ", "BIGINT"),
        "its type; of ns what is finer than a microsecond is refused",
        "make a TIMESTAMP of it with to_timestamp, timestamp_seconds or timestamp_millis",
    ),
    "order": Use("the order of `top`", _SIMPLE, "exact", _SINGLE),
    "count": Use("`count`", tuple(LOGICAL), "BIGINT, exact"),
    "sum": Use("`sum`", _NUMBERS, "BIGINT; DOUBLE; DECIMAL of 10 digits more, 38 at most", _NUMBER),
    "mean": Use("`mean`", _NUMBERS, "DOUBLE; DECIMAL of 4 digits more, 38 at most", _NUMBER),
    "variance": Use("`variance`, `stddev`", _LANES, "DOUBLE", _NUMBER),
    "min": Use("`min`, `max`", _SIMPLE, "its type, exact", _ORDER),
    "by": Use("the order of `arg_min`, `arg_max`", _SIMPLE, "exact", _ORDER),
    "first": Use("`first`, `last`, `arg_min`, `arg_max`", tuple(LOGICAL), "its type, exact"),
    "collect_list": Use("`collect_list`", tuple(LOGICAL), "ARRAY of its type, exact"),
    "count_distinct": Use("`count_distinct`, DISTINCT", _SIMPLE, "BIGINT, exact", _SINGLE),
    "quantile": Use("`quantile`, `median`", _NUMBERS, "DOUBLE", _NUMBER),
    "approx_quantile": Use("`approx_quantile`", _PLAIN, "DOUBLE, an estimate", _NUMBER),
    "approx_count_distinct": Use(
        "`approx_count_distinct`",
        (*_LANES, "BOOLEAN", *_TIMES, "STRING"),
        "BIGINT, an estimate",
        _SINGLE,
    ),
    "bool_and": Use(
        "`bool_and`, `bool_or`, a condition of `filter`",
        ("BOOLEAN",),
        "BOOLEAN",
        remedy_of("bool_and"),
    ),
    "frame": Use("`sum` over a frame", _NUMBERS, "as `sum`", _NUMBER),
    "lag": Use("`lag`, `lead`", tuple(LOGICAL), "its type, exact"),
    "carried": Use("a column of a row in results", tuple(LOGICAL), "its type, exact"),
    "result": Use("a column of what a function gives", tuple(LOGICAL), "its type, exact"),
    "state": Use("a value in state", tuple(LOGICAL), "its type, exact"),
}
