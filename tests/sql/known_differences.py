"""Where results differ from Flink's on purpose, as docs/sql.md says.

Patterns say why. Over Arrow tables `known_differences.json` has the very rows, which
``python -m tests.sql.exempted`` writes: each of them must differ, and no other may.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tests.sql.recorded_values import Recorded


@dataclass(frozen=True)
class Difference:
    """Rows of expressions whose values differ.

    Parameters
    ----------
    table : str
    pattern : str
        Of whole expressions.
    rows : sequence of int, optional
        Default: all.
    outside_utc : bool
        Whether values differ in zones other than UTC alone.
    on_spark : bool
        Whether values differ over DataFrames alone.
    """

    table: str
    pattern: str
    rows: Sequence[int] | None = None
    outside_utc: bool = False
    on_spark: bool = False

    def covers(self, recording: Recorded, row: int) -> bool:
        """Whether a row of an expression is one of them."""
        if self.table != recording.table or (self.rows is not None and row not in self.rows):
            return False
        if self.outside_utc and recording.zone == "UTC":
            return False
        return re.fullmatch(self.pattern, recording.expression) is not None


_READ = r"(TO_DATE|UNIX_TIMESTAMP|CONVERT_TZ)\(x.*|DATE_FORMAT\(x, .*"
_PART = (
    r"(EXTRACT|YEAR|QUARTER|MONTH|DAYOF\w+|HOUR|MINUTE|SECOND)\(.*|CAST\(tn AS DATE\)"
    r"|CAST\(t[sn] AS TIMESTAMP\(0\)\)|FLOOR\(t[sn] TO (YEAR|QUARTER|MONTH)\)|CEIL\(t[sn] TO \w+\)"
)
#: Values that differ.
DIFFERENCES = (
    # Flink counts characters beyond 16 bits as two
    Difference("texts", r"[LR]PAD\(.*|OVERLAY\(.*|REGEXP_INSTR\(.*", (3,)),
    Difference("texts", r"[LR]PAD\(.*'😀'\)"),
    # NaN is greater than all numbers, and -0.0 is in a list with 0
    Difference("numbers", r".*([<>]|BETWEEN).*|IF\(d > 0, b, n\)", (3,)),
    Difference("numbers", r"d IN \(2.5, 0\)", (8,)),
    Difference("numbers", r"SQRT\(d\)", (5,)),
    # a FLOAT with a DOUBLE is a FLOAT in Flink
    Difference("numbers", r"f [-+*] (d|n|ti)", (9, 10)),
    # times before 1970 are rounded up, of the year 1 have the Julian calendar
    Difference("times", _PART, (2, 3)),
    Difference("times", r"(FLOOR|CEIL)\(.* TO (WEEK|DAY)\)|UNIX_TIMESTAMP\(DATE_FORMAT.*", (4,)),
    Difference("times", r"TIMESTAMPDIFF\(WEEK, .*", (3, 4, 5)),
    # hours and minutes of the local time of the year 1, and of 1969 in New York
    Difference("times", rf"{_PART}|.*(HOUR|EXTRACT|FLOOR|CEIL)\(.*", (1, 4), outside_utc=True),
    # about the ends of daylight saving time, or across one, Flink takes another offset
    Difference("times", r"FLOOR\(ts .*|CEIL\(ts .*", (0, 6, 7), outside_utc=True),
    Difference("times", r"(FLOOR|CEIL)\(ts TO (QUARTER|YEAR)\)", outside_utc=True),
    # a clock time that is skipped is moved, and one that occurs twice is the first
    Difference("times", r".*\(tn\b.*|TIMESTAMPDIFF\(.*\btn\b.*", (6,), outside_utc=True),
    Difference("times", r"CAST\(ts AS TIMESTAMP.*|UNIX_T.*DATE_FORMAT.*", (7,), outside_utc=True),
    # Flink reads times of other formats, and gives numbers for texts that are none
    Difference("times", r"(TRY_)?CAST\(x AS .*|TO_TIMESTAMP\(x.*", (5, 9)),
    Difference("casts", r"TRY_CAST\(s AS (TINY|SMALL|BIG)?INT\)", (2,)),
    Difference("casts", r"TRY_CAST\([bdmn] AS .*"),
    # keys are sorted in Flink; Spark formats numbers with a point as DOUBLE
    Difference("json", r"JSON_QUERY\(j, '\$'\)", (1, 3)),
    Difference("json", r"JSON_VALUE\(j, '[^' ]*a.*", (1,), on_spark=True),
    Difference("json", r"TRY_CAST\(JSON_VALUE.* AS INT\)", (1,)),
    # Flink refuses to read a number as another type
    Difference("json", r"JSON_VALUE\(.* RETURNING .*"),
    # -0.0 is 0.0 in Spark
    Difference("numbers", r"ATAN2\(d, d\)", (8,), on_spark=True),
    # Flink cannot round or truncate NaN, infinite and very large numbers
    Difference("numbers", r"ROUND\([df].*|.*TRUNCATE\(d.*", (3, 4, 5, 10)),
    Difference("numbers", r"TRUNCATE\(f.*", (3, 4, 5, 9)),
    Difference("times", _READ, (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)),
    # instants after the year 9999 are NULL in Flink
    Difference("times", r".*TO_TIMESTAMP_LTZ\(e, 0\).*|FROM_UNIXTIME\(e.*", (3,)),
    Difference("times", r"FROM_UNIXTIME\(e.*", (5,), outside_utc=True),
    Difference("times", r"INTERVAL '1' DAY"),
    Difference("times", r"CAST\(CAST\(t[sn] AS TIMESTAMP\(0\)\) AS STRING\)", (2, 3)),
    Difference("times", r"CAST\((IF|TO_TIMESTAMP|CAST\(x).*", (6,), outside_utc=True),
    Difference("times", r"CAST\(TO_TIMESTAMP\(x\) AS STRING\)|CAST\(CAST\(x AS .*", (5, 9)),
    # texts of a FLOAT have a digit more in Java 17, and FLOAT with an INT is a FLOAT
    Difference("casts", r"CAST\(CAST\([dn] AS FLOAT\) AS STRING\)", (3, 4, 7)),
    Difference("numbers", r"CAST\(CAST\(d AS FLOAT\) AS STRING\)", (7,)),
    Difference("numbers", r"CAST\(f / 3 AS STRING\)"),
    Difference("numbers", r"CAST\(FLOOR\(d\) AS STRING\)", (8,)),
    # a BIGINT has 19 digits in Flink, and 20 in Spark
    Difference("numbers", r"m / b"),
    # DOUBLE in JSON has another form in Flink
    Difference("casts", r"JSON_(OBJECT|ARRAY|STRING)\(.*\bd\b.*", (3, 4, 7, 8, 9)),
)
#: Expressions of which a row may raise an error where Flink wraps around, saturates or gives NULL.
RAISES = {
    "texts": r"FROM_BASE64\(s\)|REGEXP\w*\(s, '\('.*",
    "numbers": (
        r"-\w+|ABS\(\w+\)|\w+ [-+*/%] .*|CAST\(d AS INT\)|ROUND\([nb], -\d\)|LOG\(.*, .*\)"
        r"|MOD\(.*|-7 / 2|POWER\(.*|CAST\([df] AS DECIMAL.*"
    ),
    "times": r"TIMESTAMPDIFF\((SECOND|MINUTE), .*|FROM_UNIXTIME\(e.*|TIMESTAMPADD\(.*|.*CAST\(x AS "
    r"TIMESTAMP.*|.*TO_TIMESTAMP_LTZ\(e, 0\).*",
    "casts": r".*CAST\(.*|s > n|n [=+] s",
    "json": "JSON_VALUE.* RETURNING .*",
    "nested": r"MAP\[k, n\]|MAP_FROM_ARRAYS.*",
    "urls": "",
}


def is_known(recording: Recorded, row: int) -> bool:
    """Whether a value is known to differ."""
    return any(each.covers(recording, row) for each in DIFFERENCES)


def may_raise(recording: Recorded) -> bool:
    """Whether a row of an expression may raise an error where Flink has a value."""
    return re.fullmatch(RAISES[recording.table], recording.expression) is not None
