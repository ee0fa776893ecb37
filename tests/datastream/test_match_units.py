"""Units of time in expressions over a match are words, not columns of a variable."""

from __future__ import annotations

import pyarrow as pa
import pytest

import gpu_windows as gw

ROWS = gw.stream(
    pa.table(
        {"v": [1, 5, 6, 1], "ts": pa.array([0, 1, 2, 5], pa.timestamp("s")).cast("timestamp[us]")}
    )
).event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())


@pytest.mark.parametrize(
    ("measure", "value"),
    [
        ("SUM(TIMESTAMPDIFF(SECOND, TIMESTAMP '1970-01-01 00:00:00', B.ts))", 3),
        ("AVG(TIMESTAMPDIFF(SECOND, B.ts, B.ts))", 0),
        ("TIMESTAMPDIFF(SECOND, A.ts, C.ts)", 5),
        ("TIMESTAMPDIFF(second, FIRST(B.ts), LAST(B.ts))", 1),
    ],
)
def test_differences_of_times(measure: str, value: int) -> None:
    text = f"""
        SELECT * FROM t MATCH_RECOGNIZE (
            ORDER BY ts MEASURES {measure} AS x AFTER MATCH SKIP PAST LAST ROW
            PATTERN (A B+ C) DEFINE B AS B.v > 2, C AS C.v <= 2)
    """
    assert gw.sql(text, t=ROWS).result().to_pydict() == {"x": [value]}
