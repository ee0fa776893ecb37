"""Values that a Flink 2.3 gave for expressions, and the rows that it gave them for.

They were asked of `tests/oracle`'s Flink: ``SELECT expression FROM rows``, in two time zones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import gpu_windows as gw
from gpu_windows.errors import SqlError
from tests.sql.recorded_values import is_close

_FILE = Path(__file__).parent / "functions.json"
#: The times of the rows in milliseconds, by zone: in New York they are about the days of DST.
TIMES = {
    "UTC": [1709212496789, -1, 1711848600000, None],
    "America/New_York": [1710050400000, 1709175600000, 1730606400000, None],
}
#: Expressions in one statement.
_AT_ONCE = 32
IN = "FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(at), INTERVAL '1' HOUR))"

#: What is an error here where a Flink wraps around, saturates or gives NULL, or is told in
#: docs/sql.md to be otherwise.
ELSEWISE = {
    *("ABS(CAST(-2147483648 AS INT))", "d / 0", "2147483647 + 1", "CAST(1000 AS TINYINT)"),
    *("CAST(2147483647 AS INT) + CAST(1 AS INT)", "CAST(2147483647 AS INT) * n"),
    *("CAST(9223372036854775807 AS BIGINT) + b", "CAST(9223372036854775807 AS BIGINT) * b"),
    *("CAST('12.7' AS INT)", "CAST(1e10 AS INT)", "CAST(4294967296 AS INT)"),
    *("REGEXP_EXTRACT(s, '(', 1)", "REGEXP_REPLACE(s, '[', '*')"),
    *("CAST('NaN' AS DOUBLE) > d", "UPPER('straße')"),
    "UNIX_TIMESTAMP('nope')",
}
#: Of times before 1970 Flink takes parts after rounding them up to a second; of those in summer
#: it floors a year and a quarter by the summer's zone.
_OF_TIMES = re.compile(
    r"(EXTRACT|YEAR|QUARTER|MONTH|DAYOF\w+|HOUR|MINUTE|SECOND)\(.*"
    r"|FLOOR\(ts TO (YEAR|QUARTER|MONTH)\)"
)
_ODD_ROW = {"UTC": 1, "America/New_York": 2}


def is_odd(zone: str, expression: str, row: int) -> bool:
    """Whether Flink's value for a row is one that is not meant here."""
    return _ODD_ROW[zone] == row and _OF_TIMES.fullmatch(expression) is not None


def values() -> dict[str, dict[str, list[str | None]]]:
    """Return the values of expressions for the rows, by zone."""
    found: dict[str, dict[str, list[str | None]]] = json.loads(_FILE.read_text())
    return {zone: found[zone] for zone in TIMES}


def rows(zone: str) -> pa.Table:
    """Return the rows that expressions are over; ``i`` numbers them, ``at`` is their time."""
    times = [None if each is None else each * 1_000 for each in TIMES[zone]]
    return pa.table(
        {
            "i": pa.array(range(4), pa.int32()),
            "at": pa.array(range(4), pa.timestamp("us", "UTC")),
            "s": pa.array(["id=17 d", "", "a.b.c\\x", None]),
            "n": pa.array([7, -7, 0, None], pa.int32()),
            "b": pa.array([7, -7, 0, None], pa.int64()),
            "d": pa.array([2.5, -2.5, 0.1, None], pa.float64()),
            "m": pa.array([Decimal("2.55"), Decimal("-2.55"), Decimal("0.00"), None]).cast(
                pa.decimal128(10, 2)
            ),
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "ok": pa.array([True, False, True, None]),
            "arr": pa.array([[1, 2, 3], [4], [5, 6], None], pa.list_(pa.int32())),
        }
    )


def refusal(of: gw.typing.TimedStream, items: str) -> SqlError | None:
    """Return why the items of a SELECT are refused; None if they are not."""
    try:
        gw.sql(f"SELECT {items} {IN}", t=of)
    except SqlError as error:
        return error
    return None


def accepted(of: gw.typing.TimedStream, expressions: Sequence[str]) -> list[str]:
    """Return the expressions that are not refused; each of the others is, by itself, at its place.

    Spark is asked for many at once, and for halves of them where one is refused.
    """
    if len(expressions) <= _AT_ONCE:
        items = ", ".join(f"{each} AS x{place}" for place, each in enumerate(expressions))
        refused = refusal(of, items)
        if refused is None:
            return list(expressions)
        if refused.line is None:
            raise refused
        if len(expressions) == 1:
            return []
    half = len(expressions) // 2
    return [*accepted(of, expressions[:half]), *accepted(of, expressions[half:])]


def differs(ours: Any, flinks: str | None) -> bool:
    """Return whether a value is not the one that Flink gave."""
    if ours is None or flinks is None:
        return ours is not None or flinks is not None
    if isinstance(ours, bool):
        return str(ours).lower() != flinks
    if isinstance(ours, int | float | Decimal):
        single = float(np.float32(flinks))  # of FLOAT
        return float(ours) != single and not is_close(float(ours), float(flinks))
    if isinstance(ours, datetime):
        instant = datetime.fromisoformat(flinks.replace("Z", "+00:00"))
        return ours.astimezone(UTC) != instant.replace(tzinfo=instant.tzinfo or UTC)
    if isinstance(ours, date):
        return ours.isoformat() != flinks
    if isinstance(ours, list):
        return f"[{_joined(ours)}]" != flinks
    if isinstance(ours, dict):  # a row
        return f"+I[{_joined([*ours.values()])}]" != flinks
    return str(ours) != flinks


def _joined(values: Sequence[Any]) -> str:
    return ", ".join("null" if each is None else str(each) for each in values)
